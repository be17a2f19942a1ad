"""Preview of a job before its submission."""

from pathlib import Path
from typing import Any

import click

from hekla.cli import manifest, output
from hekla.cli.client import client_of
from hekla.cli.servers import Choice
from hekla.lib.text import strip_control_codes

_COLOURS = {"now": "green", "waits": "yellow", "never": "red"}


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--tenant", help="Your tenant (short name). Default: the first.")
@click.option("--queue", help="Queue. Overrides the manifest.")
@click.option("--json", "as_json", is_flag=True, help="Print the console's answer.")
@click.pass_obj
def preview(choice: Choice, file: Path, tenant: str | None, queue: str | None, as_json: bool) -> None:
    """Preview the job in FILE: whether it would start now, the pending reason and suggestions. Submit nothing."""
    read = manifest.read(file, name=None, queue=queue)
    answer = client_of(choice).what_if(read.document, tenant=tenant)
    if as_json:
        output.as_json(answer)
    else:
        _tell(answer)


def _tell(answer: dict[str, Any]) -> None:
    head, *sentences = answer["text"]
    click.secho(head, fg=_COLOURS[answer["verdict"]], bold=True)
    for one in answer["candidates"]:
        click.echo(f"  {one['cluster']} ({one['queue']}): {strip_control_codes(one['sentence'])}")
    for sentence in sentences:
        click.echo(f"  {sentence}")
    if answer["changes"]:
        click.echo("With one of these changes the job would start now:")
    for change in answer["changes"]:
        evicts = f" (evicts {change['evicts']} pods)" if change["evicts"] else ""
        click.echo(f"  {change['text']}{evicts}: {change['change']}")
