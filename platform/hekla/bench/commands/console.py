"""`hekla bench console`: the speed of pages, lists and submissions in a separate console with many jobs."""

import json
import subprocess
import sys
from typing import Any

import click

from hekla.cli import output
from hekla.cli.client import Failure

_TABS = 4
_CASES = {"spread": "pages of all kinds", "together": "one job"}
_LOADS = {"alone": "no other requests", "flood": "with the requests"}
_MODULE = "hekla.bench.console"  # a separate process, with its own servers and database


@click.command("console")
@click.option("--jobs", type=click.IntRange(200, 1_000_000), default=100_000, show_default=True, help="Number of jobs.")
@click.option(
    "--pods-per-job", type=click.IntRange(1, 100), default=10, show_default=True, help="Pods of a job, on average."
)
@click.option("--tenants", type=click.IntRange(1, 1000), default=200, show_default=True, help="Number of tenants.")
@click.option("--nodes", type=click.IntRange(1, 10_000), default=1000, show_default=True, help="Number of nodes.")
@click.option("--repeat", type=click.IntRange(1, 10_000), default=100, show_default=True, help="Requests per page.")
@click.option("--page", "pages", multiple=True, help="Measure this page only, by its name. May be repeated.")
@click.option(
    "--sockets", type=click.IntRange(1, 20_000), help="Measure this number of open pages and their delay instead."
)
@click.option(
    "--changes-per-second", type=click.FloatRange(0.1, 100), default=5.0, show_default=True, help="For open pages."
)
@click.option(
    "--requests-a-minute",
    type=click.IntRange(1, 100_000),
    help="Measure one person's pages while a program of another sends this number of requests instead.",
)
@click.option(
    "--seconds", type=click.FloatRange(1, 600), default=30.0, show_default=True, help="For open pages and requests."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def console(
    as_json: bool, sockets: int | None, requests_a_minute: int | None, pages: tuple[str, ...], **sizes: float
) -> None:
    """Measure a separate console with many jobs. This takes some minutes and 3 GiB of disk."""
    sizes |= {"requests_a_minute": requests_a_minute} if requests_a_minute else {}
    found = _measured(sizes | _with_people_for(sockets, int(sizes["tenants"])), pages)
    if as_json:
        click.echo(json.dumps(found))
    elif sockets:
        _tell_sockets(found)
    elif requests_a_minute:
        _tell_flood(found)
    else:
        _tell_pages(found)


def _with_people_for(sockets: int | None, tenants: int) -> dict[str, int]:
    """The options for this number of open pages, with enough people to open them."""
    return {"sockets": sockets, "people_per_tenant": max(4, sockets // tenants // _TABS)} if sockets else {}


def _tell_sockets(found: dict[str, Any]) -> None:
    click.echo(f"{found['sockets']:,} open pages, {found['per_second']:g} changes a second; ", nl=False)
    click.echo("milliseconds from the commit to the page")
    rows = [
        (_CASES[case], view, row["p50"], row["p99"], row["max"], f"{row['deliveries']:,}", row["lost"])
        for case, of_case in found["cases"].items()
        for view, row in {"all": of_case, **of_case["views"]}.items()
    ]
    output.table(("OPEN", "VIEW", "P50", "P99", "MAX", "RECEIVED", "LOST"), rows, "")
    click.echo()
    costs = [
        (
            _CASES[case],
            f"{row['kilobytes_a_socket']} kB",
            f"{row['opened_in_seconds']} s",
            f"{row['cpu_seconds_to_open']} s",
            f"{row['cpu_idle']:.0%}",
            f"{row['cpu_seconds'] / row['changed_in_seconds']:.0%}",
        )
        for case, row in found["cases"].items()
    ]
    output.table(("OPEN", "MEMORY PER PAGE", "OPENED IN", "CPU TO OPEN", "CPU IDLE", "CPU WITH CHANGES"), costs, "")
    click.echo(f"{found['cores']} cores; the load was {found['load_average']:.1f} before all of it had begun.")


def _tell_flood(found: dict[str, Any]) -> None:
    click.echo(f"{found['jobs']:,} jobs; {found['a_minute']:,} requests a minute of one person; ", nl=False)
    click.echo("milliseconds of the pages of another")
    rows = [
        (_LOADS[case], row["p50"], row["p99"], row["max"], row["pages"], row["failed"], row["unready"])
        for case, row in found["cases"].items()
    ]
    output.table(("LOAD", "P50", "P99", "MAX", "PAGES", "FAILED", "NOT READY"), rows, "")
    click.echo()
    output.table(("STATUS", "ANSWERS TO THE PROGRAM"), sorted(found["answers"].items()), "")


def _tell_pages(found: dict[str, Any]) -> None:
    click.echo(f"{found['jobs']:,} jobs, {found['pods']:,} pods, {found['tenants']} tenants; ", nl=False)
    click.echo("milliseconds in the server")
    rows = [(row["what"], row["who"], row["p50"], row["p99"], row["cpu"], row["queries"]) for row in found["pages"]]
    output.table(("PAGE", "FOR", "P50", "P99", "CPU", "QUERIES"), rows, "")
    click.echo()
    weights = [(name, f"{size / 1000:,.0f} kB") for name, size in found["first_load_bytes"].items()]
    output.table(("FIRST VISIT", "COMPRESSED, WITHOUT PLOTS"), weights, "")


def _measured(sizes: dict[str, float], pages: tuple[str, ...]) -> dict[str, Any]:
    words = [f"--{name.replace('_', '-')}={value}" for name, value in sizes.items()]
    words += [f"--page={page}" for page in pages]
    done = subprocess.run([sys.executable, "-P", "-m", _MODULE, *words], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise Failure("The console could not be measured.")
    found: dict[str, Any] = json.loads(done.stdout)
    return found
