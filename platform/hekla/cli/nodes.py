"""Nodes."""

from typing import Any

import click

from hekla.cli import output
from hekla.cli.client import client_of
from hekla.cli.servers import ServerOptions
from hekla.lib.text import strip_control_codes


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def list_nodes(choice: ServerOptions, as_json: bool) -> None:
    """List the nodes with their zone, capacity, allocation, measured usage and taints."""
    found = client_of(choice).nodes()
    if as_json:
        output.as_json(found)
        return
    rows = [
        (
            node["name"],
            f"{node['cluster']} (simulated)" if node["is_simulated"] else node["cluster"],
            strip_control_codes(node.get("zone", "")),
            _state(node["is_ready"], node["is_cordoned"]),
            output.amounts(node["allocatable"]),
            output.amounts(node["used"]),
            _usage(node.get("usage")),
            strip_control_codes(", ".join(node["taints"])),
            strip_control_codes(node["message"]),
        )
        for node in found
    ]
    output.table(
        ("NAME", "CLUSTER", "ZONE", "STATE", "CAPACITY", "ALLOCATED", "MEASURED", "TAINTS", "MESSAGE"),
        rows,
        "No nodes.",
    )


def _usage(usage: dict[str, Any] | None) -> str:
    """Older servers measure none."""
    return f"cpu {usage['cpu']:.0f}%, memory {usage['memory']:.0f}%" if usage else ""


def _state(is_ready: bool, is_cordoned: bool) -> str:
    if not is_ready:
        return click.style("not ready", fg="red")
    return click.style("cordoned", fg="yellow") if is_cordoned else "ready"
