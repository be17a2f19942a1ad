"""Reports of the measures."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from hekla.cli import output
from hekla.cli.client import Client, Failure, client_of
from hekla.cli.saving import save, save_new
from hekla.cli.servers import ServerOptions
from hekla.lib.text import strip_control_codes

_MOST = 1000
_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_RUN = click.option("--run", help="The period of this run, as `history` lists them. Default: the last whole period.")
CommandT = TypeVar("CommandT", bound=Callable[..., Any])


def _settings(command: CommandT) -> CommandT:
    """The options that set what a report is."""
    for option in reversed(
        (
            click.option("--scope", type=click.Choice(("all", "tenant", "queue", "cluster")), help="What it is about."),
            click.option("--subject", help="The name of the tenant, queue or cluster."),
            click.option("--section", "sections", multiple=True, help="A section, repeatable."),
            click.option("--period", type=click.Choice(("day", "week", "month")), help="The time that it covers."),
            click.option("--every", type=click.Choice(("never", "day", "week", "month")), help="When it is sent."),
            click.option("--hour", type=click.IntRange(0, 23), help="At which hour of the time zone it is sent."),
            click.option("--time-zone", help="For example Europe/Berlin or Asia/Shanghai."),
            click.option("--to", "recipients", multiple=True, help="A user name, repeatable."),
        )
    ):
        command = option(command)
    return command


@click.command()
@_JSON
@click.pass_obj
def list_reports(choice: ServerOptions, as_json: bool) -> None:
    """List the reports that you own or get."""
    found = client_of(choice).pages("reports", _MOST)
    if as_json:
        output.as_json(found)
        return
    rows = [(one["name"], _state(one), output.moment(one["next_at"]), one["owner"], one["uid"]) for one in found]
    output.table(("NAME", "STATE", "NEXT", "OWNER", "UID"), rows, "No reports. `hekla report create NAME` creates one.")


@click.command()
@_JSON
@click.pass_obj
def list_sections(choice: ServerOptions, as_json: bool) -> None:
    """List what a report can show."""
    found = client_of(choice).get("report-sections")
    if as_json:
        output.as_json(found)
        return
    output.table(("SECTION", "SHOWS"), [(one["name"], one["meaning"]) for one in found], "")


@click.command()
@click.argument("name")
@_settings
@click.pass_obj
def create(choice: ServerOptions, /, name: str, **settings: Any) -> None:  # noqa: ANN401
    """Create the report NAME. By default it shows the last week, and is sent only by hand."""
    document = {"sections": ["classes", "tenants", "waste"], **_fields(settings), "name": name}
    _say(client_of(choice).post("reports", document))


@click.command()
@click.argument("report")
@click.option("--name", help="A new name.")
@_settings
@click.pass_obj
def edit(choice: ServerOptions, /, report: str, name: str | None, **settings: Any) -> None:  # noqa: ANN401
    """Change REPORT (a name or uid). It is yours from then on."""
    document = _fields({**settings, "name": name})
    if not document:
        raise click.UsageError("Say what to change, for example --every week.")
    client = client_of(choice)
    _say(client.patch(_path(client, report), document))


@click.command()
@click.argument("report")
@_RUN
@_JSON
@click.pass_obj
def show(choice: ServerOptions, report: str, run: str | None, as_json: bool) -> None:
    """Print what you may see of REPORT (a name or uid)."""
    client = client_of(choice)
    found = client.get(f"{_path(client, report)}/contents", run=run)
    if as_json:
        output.as_json(found)
        return
    for line in (found["title"], *found["lines"], *found["notices"]):
        click.echo(strip_control_codes(line))
    for part in found["parts"]:
        click.echo(f"\n{part['title']}")
        if part["text"]:
            click.echo(part["text"])
        if table := part["table"]:
            rows = [*table["rows"], *([table["foot"]] if table["foot"] else [])]
            heads = tuple(head.upper() for head in table["heads"])
            output.table(heads, [tuple(strip_control_codes(cell) for cell in row) for row in rows], "")


@click.command()
@click.argument("report")
@click.option("--kind", type=click.Choice(("pdf", "html")), default="pdf", show_default=True, help="The kind of file.")
@click.option("--output", "-o", "target", type=click.Path(path_type=Path), help="Where to save it.")
@click.option("--force", is_flag=True, help="Replace an existing file.")
@_RUN
@click.pass_obj
def download(choice: ServerOptions, report: str, kind: str, target: Path | None, force: bool, run: str | None) -> None:
    """Download what you may see of REPORT (a name or uid) as a file."""
    client = client_of(choice)
    query = {"run": run} if run else {}
    chunks = client.read_bytes(f"{_path(client, report)}/file", kind=kind, **query)
    file = target or Path(f"report.{kind}")
    if force:
        save(chunks, file)
        click.echo(f"Saved {file}.")
    else:
        save_new(chunks, file)


@click.command()
@click.argument("report")
@click.pass_obj
def send(choice: ServerOptions, report: str) -> None:
    """Send REPORT (a name or uid) of the last whole period now."""
    client = client_of(choice)
    found = client.post(f"{_path(client, report)}/runs", {})
    click.echo(f"{report} is being sent to {len(found['copies'])} people. See `hekla report history {report}`.")


@click.command()
@click.argument("report")
@_JSON
@click.pass_obj
def history(choice: ServerOptions, report: str, as_json: bool) -> None:
    """Show to whom REPORT (a name or uid) was sent, and why not."""
    client = client_of(choice)
    found = client.get(f"{_path(client, report)}/runs")
    if as_json:
        output.as_json(found)
        return
    rows = [
        (output.moment(run["created_at"]), output.moment(run["begin"]), copy["username"], _fate(copy), run["uid"])
        for run in found
        for copy in run["copies"]
    ]
    output.table(("TIME", "PERIOD FROM", "RECIPIENT", "RESULT", "RUN"), rows, f"{report} was not sent yet.")


@click.command()
@click.argument("report")
@click.option("--end", is_flag=True, help="End the pause.")
@click.pass_obj
def pause(choice: ServerOptions, report: str, end: bool) -> None:
    """Pause REPORT (a name or uid): it is not sent."""
    client = client_of(choice)
    path = f"{_path(client, report)}/pause"
    if end:
        client.delete(path)
    else:
        client.post(path, {})
    click.echo(f"{report} is not paused." if end else f"{report} is paused.")


@click.command()
@click.argument("report")
@click.pass_obj
def leave(choice: ServerOptions, report: str) -> None:
    """Take yourself off the recipients of REPORT (a name or uid)."""
    client = client_of(choice)
    client.post(f"{_path(client, report)}/leave", {})
    click.echo(f"You do not get {report} any more.")


@click.command()
@click.argument("report")
@click.pass_obj
def delete(choice: ServerOptions, report: str) -> None:
    """Delete REPORT (a name or uid) and its history."""
    client = client_of(choice)
    client.delete(_path(client, report))
    click.echo(f"{report} is deleted.")


def _fields(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The options that a command has, as fields of a spec."""
    found = {name: value for name, value in settings.items() if value not in (None, ())}
    if found.get("scope") == "all":
        found["subject"] = ""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}


def _path(client: Client, report: str) -> str:
    matching = [one for one in client.pages("reports", _MOST) if report in (one["name"], one["uid"])]
    if not matching:
        raise Failure(f"Unknown report “{report}”. `hekla report list` lists the reports that you can see.")
    if len(matching) > 1:
        raise Failure(f"Several reports are named “{report}”. Use the uid.")
    return f"reports/{matching[0]['uid']}"


def _say(report: Mapping[str, Any]) -> None:
    when = f"next at {output.moment(report['next_at'])}" if report["next_at"] else "sent only by hand"
    click.echo(f"{report['name']} is saved: {when}.")


def _state(report: Mapping[str, Any]) -> str:
    if report["stopped"]:
        return f"stopped: {report['stopped']}"
    return "paused" if report["is_paused"] else "on" if report["next_at"] else "by hand"


def _fate(copy: Mapping[str, Any]) -> str:
    if copy["obstacle"]:
        return f"left out: {copy['obstacle']}"
    if copy["sent_at"]:
        return "sent"
    if copy["failed_at"]:
        return f"failed: {copy['error']}"
    return f"waiting: {copy['error']}".rstrip(": ") if copy["has_mail"] else "in the console only"
