"""Nodes."""

from typing import Any
from urllib.parse import quote

import click

from hekla.cli import output
from hekla.cli.client import client_of
from hekla.cli.failing import Failure
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


_NODE = click.argument("node")
_CLUSTER = click.option("--cluster", help="The cluster of the node. Needed if nodes of several clusters have its name.")


@click.command()
@_NODE
@_CLUSTER
@click.option("--reason", help="Why the node is drained. The owners of the jobs see it.")
@click.option("--token", help="Of a preview, printed by --dry-run: drain only if the same pods are still there.")
@click.option("--dry-run", is_flag=True, help="Preview which jobs move, and where and when they start. Change nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def drain(
    choice: ServerOptions,
    node: str,
    cluster: str | None,
    reason: str | None,
    token: str | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Cordon NODE and evict its pods (operators and platform admins). Undo it by “hekla node uncordon”."""
    client = client_of(choice)
    address = _address(choice, node, cluster, "drain")
    if not dry_run and not reason:
        raise Failure("Say why with --reason, or preview the drain with --dry-run.")
    body = {"reason": reason, **({"token": token} if token else {})}
    found = client.get(address) if dry_run else client.post(address, body)
    if as_json:
        output.as_json(found)
    elif dry_run:
        _print_preview(found)
        click.echo(f"To drain exactly this: --token {found['token']}")
    else:
        click.echo(f"{node} is drained. Evicted: {found['pods']} pods of {found['jobs']} jobs.")


@click.command()
@_NODE
@_CLUSTER
@click.pass_obj
def uncordon(choice: ServerOptions, node: str, cluster: str | None) -> None:
    """Let pods start on NODE again, and end its drain."""
    client_of(choice).delete(_address(choice, node, cluster, "drain"))
    click.echo(f"{node} accepts pods again.")


@click.command()
@_NODE
@click.argument("labels", nargs=-1)
@_CLUSTER
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def label(choice: ServerOptions, node: str, labels: tuple[str, ...], cluster: str | None, as_json: bool) -> None:
    """Set labels of NODE for Hekla's scheduler: KEY=VALUE, or KEY- to remove one. Without LABELS, print them.

    Kubernetes does not get these labels.
    """
    client, address = client_of(choice), _address(choice, node, cluster, "labels")
    change = dict(_change(text) for text in labels)
    found = client.patch(address, {"set_labels": change}) if change else client.get(address)
    if as_json:
        output.as_json(found)
        return
    own = found["set_labels"]
    rows = [
        (strip_control_codes(key), strip_control_codes(value), "here" if key in own else "by the cluster")
        for key, value in sorted(found["labels"].items())
    ]
    output.table(("LABEL", "VALUE", "SET"), rows, "The node has no labels.")


def _change(text: str) -> tuple[str, str | None]:
    key, equals, value = text.partition("=")
    if not equals and text.endswith("-"):
        return text[:-1], None
    return key, value


def _address(choice: ServerOptions, node: str, cluster: str | None, what: str) -> str:
    """The address of the drain or the labels of a node. Raises Failure if there is none, or several."""
    names = {
        one["cluster"] for one in client_of(choice).nodes() if one["name"] == node and cluster in (None, one["cluster"])
    }
    if len(names) != 1:
        problem = (
            "There is no such node." if not names else f"Name its cluster with --cluster: {', '.join(sorted(names))}."
        )
        raise Failure(problem)
    return f"nodes/{names.pop()}/{quote(node, safe='')}/{what}"


def _print_preview(found: dict[str, Any]) -> None:
    rows = [
        (
            strip_control_codes(job["name"]) + (" (session)" if job["is_session"] else ""),
            job["owner"],
            job["tenant"],
            str(job["pods"]),
            strip_control_codes(" ".join(job["text"])),
        )
        for job in found["jobs"]
    ]
    output.table(("JOB", "OWNER", "TENANT", "PODS", "WHAT HAPPENS"), rows, "No job has pods on this node.")
    if found["stranded"]:
        names = ", ".join(job["name"] for job in found["stranded"])
        click.echo(f"Waiting jobs that fit only with this node: {strip_control_codes(names)}")
    if found["unchecked"]:
        click.echo(f"There was no time to check {found['unchecked']} more waiting jobs.")


def _usage(usage: dict[str, Any] | None) -> str:
    """Older servers measure none."""
    return f"cpu {usage['cpu']:.0f}%, memory {usage['memory']:.0f}%" if usage else ""


def _state(is_ready: bool, is_cordoned: bool) -> str:
    if not is_ready:
        return click.style("not ready", fg="red")
    return click.style("cordoned", fg="yellow") if is_cordoned else "ready"
