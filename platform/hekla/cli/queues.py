"""Queues."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import click

from hekla.cli import output
from hekla.cli.client import Client, client_of
from hekla.cli.servers import ServerOptions


def make_queue(client: Client, text: bytes, *, dry_run: bool, as_json: bool) -> None:
    """Create the queue of a manifest."""
    made = client.post_yaml("queues", text, dry_run="1" if dry_run else None)
    _print_notes(made["warnings"])
    if as_json:
        output.as_json(made)
    elif dry_run:
        click.echo("The queue is valid. Nothing was created.")
    else:
        click.echo(f"Queue {made['name']} was created: {client.server.url}/queues/{made['name']}/")


def _print_notes(sentences: list[str]) -> None:
    for sentence in sentences:
        click.secho(f"Note: {sentence}", fg="yellow", err=True)


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def list_queues(choice: ServerOptions, as_json: bool) -> None:
    """List the queues that you may submit to."""
    found = client_of(choice).queues()
    if as_json:
        output.as_json(found)
        return
    rows = [
        (
            "  " * depth + queue["name"],
            queue["cluster"],
            "open" if queue["state"] == "open" else click.style(queue["state"], fg="red"),
            queue["weight"],
            output.amounts(queue["capability"]),
            queue["description"],
        )
        for depth, queue in _as_tree(found)
    ]
    heads = ("NAME", "CLUSTER", "STATE", "WEIGHT", "CAPABILITY", "DESCRIPTION")
    output.table(heads, rows, "No queues that you may submit to. Ask a platform admin.")


def _as_tree(queues: list[dict[str, Any]]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each queue after its parent, with its depth."""
    below: dict[str, list[dict[str, Any]]] = defaultdict(list)
    known = {queue["name"] for queue in queues}
    for queue in queues:
        below[parent if (parent := queue.get("parent") or "") in known else ""].append(queue)

    def grow(parent: str, depth: int) -> Iterator[tuple[int, dict[str, Any]]]:
        for queue in below[parent]:
            yield depth, queue
            yield from grow(queue["name"], depth + 1)

    return grow("", 0)


_SHARES = {
    "held": "ALLOCATED",
    "deserved": "DESERVED",
    "borrowed": "BORROWED",
    "lent": "LENT",
    "guarantee": "GUARANTEED",
    "bound": "LIMIT",
    "pending": "PENDING",
}


@click.command()
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def show(choice: ServerOptions, name: str, as_json: bool) -> None:
    """Show the resource shares of queue NAME and its pending jobs."""
    found = client_of(choice).get(f"queues/{name}/shares")
    if as_json:
        output.as_json(found)
        return
    shares = found["shares"]
    if shares is None:
        click.echo("The scheduler ignores this queue: its settings are invalid, or the policy fails.")
    else:
        output.table(("SHARE", "AMOUNT"), [(head, output.amounts(shares[part])) for part, head in _SHARES.items()], "")
    click.echo(f"\nThe queue is {found['state']}: {found['waiting']} jobs pending, {found['inside']} fully scheduled.")
    rows = [(job["place"], job["name"], job["uid"]) for job in found["in_line"]]
    output.table(("POSITION", "JOB", "UID"), rows, "No pending jobs.")


@click.command()
@click.argument("name")
@click.option("--state", type=click.Choice(["open", "closed", "draining"]), required=True, help="New state.")
@click.pass_obj
def edit(choice: ServerOptions, name: str, state: str) -> None:
    """Open, close or drain the queue NAME (operators)."""
    found = client_of(choice).patch(f"queues/{name}", {"state": state})
    click.echo(f"{found['name']} is {found['state']}.")


@click.command()
@click.argument("name")
@click.argument("changes", metavar="FIELD=VALUE...", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def preview(choice: ServerOptions, name: str, changes: tuple[str, ...], as_json: bool) -> None:
    """Preview a change of the queue NAME, for example: hekla queue preview vision weight=3 deserved.cpu=4

    Nothing is saved (operators).
    """
    found = client_of(choice).post(f"queues/{name}/preview", _fields(changes))
    if as_json:
        output.as_json(found)
        return
    lost: Counter[str] = Counter()
    for loss in found["losses"]:
        lost[loss["queue"]] += loss["pods"]
    rows = []
    for other, after in found["after"].items():
        before = found["before"].get(other, {}).get("deserved", {})
        rows.append((other, output.amounts(before), output.amounts(after["deserved"]), lost[other] or "–"))
    output.table(("QUEUE", "DESERVED", "NEW DESERVED", "EVICTED PODS"), rows, "No queues.")
    for sentence in found["effects"]:
        click.echo(sentence)
    _print_notes(found["warnings"])


def _fields(changes: tuple[str, ...]) -> dict[str, Any]:
    """`weight=3`, `deserved.cpu=4` as the fields of a queue."""
    found: dict[str, Any] = {}
    for change in changes:
        field, equals, value = change.partition("=")
        if not equals:
            raise click.BadParameter(f"“{change}” is not of the form FIELD=VALUE.", param_hint="FIELD=VALUE")
        outer, _, resource = field.partition(".")
        if resource:
            found.setdefault(outer, {})[resource] = value
        else:
            found[outer] = _json_value(value)
    return found


def _json_value(text: str) -> Any:  # noqa: ANN401
    """The number or boolean that the text writes; otherwise the text."""
    return {"true": True, "false": False}.get(text, int(text) if text.removeprefix("-").isdecimal() else text)
