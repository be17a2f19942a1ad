"""The state of the console itself."""

from typing import Any

import click

from hekla.cli import output
from hekla.cli.client import client_of
from hekla.cli.servers import ServerOptions
from hekla.lib.text import strip_control_codes

_MEBIBYTE = 2**20
_SHORTEST_FAULT = 80


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def show(choice: ServerOptions, as_json: bool) -> None:
    """Show messages, leases, readers of the event log, versions, database and outboxes (operators only)."""
    found = client_of(choice).get("system")
    if as_json:
        output.as_json(found)
        return
    broker, database = found["broker"], found["database"]
    click.echo(f"Hekla {found['hekla']}, Python {found['python']}, Django {found['django']}")
    click.echo(
        f"PostgreSQL {database['version']}: {_mebibytes(database['size_bytes'])}, "
        f"{database['connections']} of {database['max_connections']} connections"
    )
    if broker["problem"]:
        click.secho(f"Valkey does not answer: {strip_control_codes(broker['problem'])}", fg="red")
    else:
        memory = _mebibytes(broker["memory_bytes"])
        click.echo(f"Valkey {broker['version']}: {memory}, {broker['clients']} clients")
    _print_work(found)
    tables = [(one["name"], _mebibytes(one["size_bytes"]), str(one["rows"])) for one in database["tables"]]
    output.table(("TABLE", "SIZE", "ROWS"), tables, "No tables.")
    failures = [
        (output.moment(one["at"]), one["task"], strip_control_codes(one["error"])) for one in broker["failures"]
    ]
    if failures:
        click.echo()
        output.table(("FAILED AT", "TASK", "ERROR"), failures, "")


def _print_work(found: dict[str, Any]) -> None:
    queues = [(one["name"], str(one["length"]), _seconds(one["oldest_seconds"])) for one in found["broker"]["queues"]]
    controllers = [
        (
            one["cluster"],
            "paused" if one["is_paused"] else one["holder"] or "nobody",
            _seconds(one["silent_seconds"]),
            one["version"] or one["problem"] or "–",
            strip_control_codes(one["fault"])[:_SHORTEST_FAULT],
        )
        for one in found["controllers"]
    ]
    readers = [(one["name"], str(one["behind"]), _seconds(one["behind_seconds"])) for one in found["readers"]]
    outboxes = [
        (
            one["kind"],
            str(one["waiting"]),
            str(one["overdue"]),
            str(one["abandoned"]),
            strip_control_codes(one["error"]),
        )
        for one in found["outboxes"]
    ]
    for heads, rows in (
        (("MESSAGES", "WAITING", "OLDEST"), queues),
        (("CLUSTER", "CONTROLLER", "SILENT FOR", "VERSION", "FAULT"), controllers),
        (("READER OF THE EVENT LOG", "BEHIND", "SINCE"), readers),
        (("OUTBOX", "WAITING", "OVERDUE", "GIVEN UP", "ERROR"), outboxes),
    ):
        click.echo()
        output.table(heads, rows, "None.")
    click.echo()


def _seconds(seconds: float | None) -> str:
    return "–" if seconds is None else f"{seconds:.0f} s"


def _mebibytes(size: int) -> str:
    return f"{size / _MEBIBYTE:.1f} MiB"
