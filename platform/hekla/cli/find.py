"""Search by name."""

import click

from hekla.cli import output
from hekla.cli.client import client_of
from hekla.cli.servers import Choice
from hekla.lib.text import strip_control_codes


@click.command()
@click.argument("text")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def find(choice: Choice, text: str, as_json: bool) -> None:
    """Search jobs, queues, nodes, tenants, people and help pages by name."""
    client = client_of(choice)
    found = client.get("search", q=text)
    if as_json:
        output.as_json(found)
        return
    rows = [
        (
            one["kind"],
            strip_control_codes(one["name"]),
            strip_control_codes(one["note"]),
            f"{client.server.url}{one['path']}",
        )
        for one in found
    ]
    output.table(("KIND", "NAME", "", "PAGE"), rows, "No results. Enter at least two letters.")
