"""Many jobs in one submission."""

import shlex
from pathlib import Path
from typing import Any

import click

from hekla.cli import manifest, output
from hekla.cli.client import Client, Failure, client_of
from hekla.cli.runs import print_runs, ranking
from hekla.cli.servers import ServerOptions
from hekla.domain import sweep_tables, sweeps
from hekla.domain.sweeps import SweepMethod
from hekla.lib.text import strip_control_codes

_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "-p",
    "--parameter",
    "parameters",
    multiple=True,
    metavar="NAME=VALUES",
    help="A parameter and its values, for example lr=0.1,0.01.",
)
@click.option("--list", "as_list", is_flag=True, help="Combine the values by position, not as a grid.")
@click.option(
    "--random",
    "count",
    type=click.IntRange(1, sweeps.MAX_JOBS),
    help="Number of random draws. Ranges such as lr=0.1..1 are allowed.",
)
@click.option("--seed", type=click.IntRange(0), default=0, help="Seed of the random draws.")
@click.option("--name", help="Name of the batch. Default: the job name in FILE.")
@click.option("--queue", help="Queue. Overrides the manifest.")
@click.option("--tenant", help="Your tenant (short name). Default: the first.")
@click.option(
    "--table", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="A CSV file: a row for each job."
)
@click.option("--dry-run", is_flag=True, help="Print the number of jobs and the first few. Submit nothing.")
@click.pass_obj
def submit(
    choice: ServerOptions,
    file: Path,
    parameters: tuple[str, ...],
    as_list: bool,
    count: int | None,
    seed: int,
    name: str | None,
    queue: str | None,
    tenant: str | None,
    table: Path | None,
    dry_run: bool,
) -> None:
    """Submit the job in FILE once per parameter combination. {{ lr }} in commands and variables is replaced by lr.

    Without parameters and table, FILE contains several manifests separated by ---, and --name is required.
    """
    client, dry = client_of(choice), "1" if dry_run else None
    if table and (parameters or count):
        raise Failure("Give either a table or parameters.")
    if table:
        answer = client.post("batches", _document_of_table(file, table, name, queue), tenant=tenant, dry_run=dry)
    elif not parameters:
        answer = _send_file(client, file, name, tenant, dry)
    else:
        how = SweepMethod.RANDOM if count else SweepMethod.LIST if as_list else SweepMethod.GRID
        document = _document(file, parameters, how, name, queue) | ({"count": count, "seed": seed} if count else {})
        answer = client.post("batches", document, tenant=tenant, dry_run=dry)
    for warning in answer["warnings"]:
        click.secho(f"Note: {strip_control_codes(warning)}", fg="yellow", err=True)
    if dry_run:
        _preview(answer)
        return
    batch = answer["batch"]
    where = f"{client.server.url}/batches/{batch['uid']}/"
    click.echo(f"Submitted {len(batch['jobs'])} jobs as {batch['name']} of {batch['tenant']}: {where}")


@click.command()
@click.option("--tenant", help="Only batches of this tenant (short name).")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="Maximum number of rows.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def list_batches(choice: ServerOptions, tenant: str | None, limit: int, as_json: bool) -> None:
    """List batches, newest first."""
    found = client_of(choice).pages("batches", limit, tenant=tenant)
    if as_json:
        output.as_json(found)
        return
    rows = [(b["name"], b["kind"], b["tenant"], b["owner"], output.moment(b["submitted_at"])) for b in found]
    heads = ("NAME", "KIND", "TENANT", "OWNER", "SUBMITTED")
    output.table(heads, rows, "There are no batches. `hekla batch submit` submits one.")


@click.command()
@click.argument("name")
@ranking
@_JSON
@click.pass_obj
def show(choice: ServerOptions, name: str, metric: str | None, goal: str | None, value: str, as_json: bool) -> None:
    """Show batch NAME: its jobs with the parameters that differ and the metrics that they printed, and the best job."""
    found = _named(client_of(choice), name, metric=metric, goal=goal, value=value)
    if metric and not as_json and metric not in found["metrics"]:
        raise Failure(f"No job of {name} has printed a metric “{metric}”.")
    _print(found, value, as_json=as_json)


@click.command()
@click.argument("name")
@_JSON
@click.pass_obj
def stop(choice: ServerOptions, name: str, as_json: bool) -> None:
    """Abort all unfinished jobs of batch NAME."""
    _act(choice, name, "stop", as_json=as_json)


@click.command()
@click.argument("name")
@_JSON
@click.pass_obj
def retry(choice: ServerOptions, name: str, as_json: bool) -> None:
    """Submit the failed jobs of batch NAME again."""
    _act(choice, name, "retry", as_json=as_json)


def _act(choice: ServerOptions, name: str, action: str, *, as_json: bool) -> None:
    client = client_of(choice)
    found = _named(client, name)
    _print(client.post(f"batches/{found['uid']}/actions", {"action": action}), as_json=as_json)


def _print(found: dict[str, Any], value: str = "last", *, as_json: bool) -> None:
    if as_json:
        output.as_json(found)
        return
    counts = ", ".join(f"{count} {output.phase(phase)}" for phase, count in found["phases"].items())
    click.echo(f"{found['name']} of {found['owner']} in {found['tenant']}: {counts}\n")
    print_runs(found, value)


def _document(
    file: Path, parameters: tuple[str, ...], how: SweepMethod, name: str | None, queue: str | None
) -> dict[str, Any]:
    """The sweep to send, validated as far as this machine can. Raises Failure."""
    job = manifest.read(file, name=None, queue=queue).document
    try:
        values = dict(sweeps.parse_parameter(text) for text in parameters)
    except ValueError as error:
        raise Failure(str(error)) from error
    return {"name": name or job["name"], "how": how.value, "parameters": values, "job": job}


def _document_of_table(file: Path, table: Path, name: str | None, queue: str | None) -> dict[str, Any]:
    """The sweep over the rows of a CSV file. Raises Failure."""
    if table.stat().st_size > sweep_tables.MAX_BYTES:
        raise Failure("The table is larger than 1 MiB.")
    document = _document(file, (), SweepMethod.LIST, name, queue)
    try:
        return document | {"parameters": sweep_tables.parse_table(table.read_text("utf-8-sig"))}
    except ValueError as error:
        raise Failure(f"{table.name}: {error}") from error


def _send_file(client: Client, file: Path, name: str | None, tenant: str | None, dry: str | None) -> dict[str, Any]:
    if not name:
        raise Failure("Give sweep parameters (-p lr=0.1,0.01), or the name of a batch of many jobs (--name).")
    found: dict[str, Any] = client.post_yaml("batches", manifest.bytes_of(file), name=name, tenant=tenant, dry_run=dry)
    return found


def _preview(answer: dict[str, Any]) -> None:
    click.echo(f"{answer['size']} jobs would be submitted, the first of them:\n")
    rows = [(one["spec"]["name"], _values(one["parameters"]), _command(one["spec"])) for one in answer["jobs"]]
    output.table(("JOB", "PARAMETERS", "COMMAND"), rows, "None.")


def _command(spec: dict[str, Any]) -> str:
    """The command of the first task."""
    return strip_control_codes(shlex.join(spec["tasks"][0].get("command", ())))[:80]


def _values(parameters: dict[str, str]) -> str:
    return strip_control_codes(" ".join(f"{name}={value}" for name, value in parameters.items()))[:120] or "–"


def _named(client: Client, name: str, **query: str | None) -> dict[str, Any]:
    found = client.get("batches", name=name, limit=1)["results"]
    if not found:
        raise Failure(f"Unknown batch “{name}”. `hekla batch list` lists the batches that you can see.")
    document: dict[str, Any] = client.get(f"batches/{found[0]['uid']}", **query)
    return document
