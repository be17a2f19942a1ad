"""`hekla bench proxy`: what the proxy of sessions adds to a program in a pod, in a separate console."""

import json
from typing import Any

import click

from hekla.cli import output

_NAMES = {"direct": "none", "proxy": "Hekla", "nginx": "nginx"}


@click.command("proxy")
@click.option(
    "--requests", type=click.IntRange(1, 1_000_000), default=3000, show_default=True, help="Small requests of each row."
)
@click.option("--websockets", type=click.IntRange(1, 800), default=500, show_default=True, help="Open websockets.")
@click.option(
    "--seconds", type=click.IntRange(1, 600), default=10, show_default=True, help="A message a second on each of them."
)
@click.option(
    "--mebibytes", type=click.IntRange(1, 65_536), default=1024, show_default=True, help="Size of each transfer."
)
@click.option("--repeat", type=click.IntRange(1, 100), default=3, show_default=True, help="Transfers each name.")
@click.option("--keystrokes", type=click.IntRange(1, 10_000), default=200, show_default=True, help="In a terminal.")
@click.option("--nginx", help="Measure this nginx as a plain proxy too: its name, or its path.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def proxy(nginx: str | None, as_json: bool, **sizes: int) -> None:
    """Measure ports and tools in the browser, and a terminal, in a separate console on this machine.

    The same requests go to a program in a pod directly and by the proxy. They share the cores of this machine.
    """
    from hekla.bench.proxy import measuring  # noqa: PLC0415  (loads numpy)

    found = measuring.measure(measuring.Sizes(**sizes), nginx, say=lambda text: click.echo(text, err=True))
    if as_json:
        click.echo(json.dumps(sizes | found))
    else:
        _tell(sizes, found)


def _tell(sizes: dict[str, int], found: dict[str, Any]) -> None:
    plain = found["endpoints"]["direct"]
    click.echo(f"{sizes['requests']:,} small requests; milliseconds, also more than without a proxy")
    rows = [
        (_NAMES[name], connections, row["p50"], row["p99"], *_added(row, plain["connections"][connections]), _cpu(row))
        for name, of_one in found["endpoints"].items()
        for connections, row in of_one["connections"].items()
    ]
    output.table(("PROXY", "CONNECTIONS", "P50", "P99", "MORE, P50", "MORE, P99", "REQUESTS A CPU SECOND"), rows, "")
    click.echo(f"\n{sizes['mebibytes']:,} MiB; MiB a second, and the memory that the proxy needed more")
    transfers = [
        (_NAMES[name], transfer, row["mib_per_second"], f"{_share(row, plain[transfer]):.2f}", _memory(row))
        for name, of_one in found["endpoints"].items()
        for transfer, row in of_one.items()
        if transfer != "connections"
    ]
    output.table(("PROXY", "TRANSFER", "SPEED", "OF NONE", "MEMORY"), transfers, "")
    click.echo("\nMilliseconds until the echo")
    sockets, keys = found["websockets"], found["keystrokes"]
    echoes = [
        (f"{one['count']:,} {name}", one["p50"], one["p95"], one["p99"])
        for name, one in (("websockets", sockets), ("keystrokes in a terminal", keys))
    ]
    output.table(("ECHO", "P50", "P95", "P99"), echoes, "")
    click.echo(
        f"A websocket needs {sockets['kilobytes_each']} kB, a message {sockets['cpu_ms_per_message']} ms of CPU."
    )
    click.echo(f"{found['cores']} cores; the load was {found['load_average']:.1f} before all of it had begun.")


def _added(row: dict[str, float], direct: dict[str, float]) -> tuple[float, float]:
    return round(row["p50"] - direct["p50"], 2), round(row["p99"] - direct["p99"], 2)


def _cpu(row: dict[str, float]) -> str:
    return f"{1000 / row['cpu_ms']:,.0f}" if row.get("cpu_ms") else ""


def _share(row: dict[str, float], direct: dict[str, float]) -> float:
    return row["mib_per_second"] / direct["mib_per_second"]


def _memory(row: dict[str, float]) -> str:
    return f"{row['grown_mib']} MiB" if "grown_mib" in row else ""
