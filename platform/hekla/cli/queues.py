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
    if found["cards"]:
        click.echo()
        cards = [(one["model"], f"{one['held']:g}", one["most"]) for one in found["cards"]]
        output.table(("CARD MODEL", "ALLOCATED", "LIMIT"), cards, "")
    click.echo(f"\nThe queue is {found['state']}: {found['waiting']} jobs pending, {found['inside']} fully scheduled.")
    rows = [(job["place"], job["name"], job["uid"]) for job in found["in_line"]]
    output.table(("POSITION", "JOB", "UID"), rows, "No pending jobs.")


@click.command()
@click.argument("name")
@click.argument("changes", metavar="[FIELD=VALUE...]", nargs=-1)
@click.option("--state", type=click.Choice(["open", "closed", "draining"]), help="New state.")
@click.pass_obj
def edit(choice: ServerOptions, name: str, changes: tuple[str, ...], state: str | None) -> None:
    """Change the queue NAME, or open, close or drain it (operators). For example:

    hekla queue edit vision job_order=fair required_node_groups=a100,h100 hierarchy=root/science/vision

    FIELD is a field of the queue in REST. An empty VALUE clears it. deserved.cpu=4, node_group_limits.a100.cpu=4 and
    card_quota.NVIDIA-A100=8 change one amount.
    """
    client = client_of(choice)
    wanted = _fields(client, name, changes) | ({"state": state} if state else {})
    if not wanted:
        raise click.UsageError("Name the fields to change, for example weight=3, or a --state.")
    found = client.patch(f"queues/{name}", wanted)
    click.echo(f"{found['name']} is {found['state']}." if state else f"{found['name']} was changed.")
    _print_notes(found["warnings"])


@click.command()
@click.argument("name")
@click.argument("changes", metavar="FIELD=VALUE...", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def preview(choice: ServerOptions, name: str, changes: tuple[str, ...], as_json: bool) -> None:
    """Preview a change of the queue NAME, for example: hekla queue preview vision weight=3 deserved.cpu=4

    Nothing is saved (operators).
    """
    client = client_of(choice)
    found = client.post(f"queues/{name}/preview", _fields(client, name, changes))
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


_LISTS = frozenset(
    {"tenants", "required_node_groups", "preferred_node_groups", "excluded_node_groups", "avoided_node_groups"}
)
_AMOUNTS = frozenset({"capability", "guarantee", "deserved"})
_COUNTS = "card_quota"
_AMOUNTS_BY_GROUP = "node_group_limits"


def _fields(client: Client, name: str, changes: tuple[str, ...]) -> dict[str, Any]:
    """`weight=3`, `deserved.cpu=4`, `tenants=lab,other` as the fields of a queue. Its other amounts stay."""
    found: dict[str, Any] = {}
    pairs = [_pair(change) for change in changes]
    current = client.get(f"queues/{name}") if any(part for _field, part, _value in pairs) else {}
    for field, part, value in pairs:
        if not part:
            found[field] = _value(field, value)
        elif field == _AMOUNTS_BY_GROUP:
            group, _, resource = part.partition(".")
            limits = found.setdefault(field, dict(current[field]))
            limits[group] = _with_amount(limits.get(group, {}), resource, value)
        elif field in _AMOUNTS:
            found[field] = _with_amount(found.get(field, current[field]), part, value)
        elif field == _COUNTS:
            found[field] = _with_amount(found.get(field, current[field]), part, _value(field, value))
        else:
            raise click.BadParameter(f"“{field}” has no parts.", param_hint="FIELD=VALUE")
    return found


def _pair(change: str) -> tuple[str, str, str]:
    """The field, its part after the first point, and the value."""
    left, equals, value = change.partition("=")
    if not equals:
        raise click.BadParameter(f"“{change}” is not of the form FIELD=VALUE.", param_hint="FIELD=VALUE")
    field, _, part = left.partition(".")
    return field, part, value


def _with_amount(amounts: dict[str, Any], resource: str, value: Any) -> dict[str, Any]:  # noqa: ANN401
    """The amounts with this one set, or removed if it is empty."""
    others = {name: amount for name, amount in amounts.items() if name != resource}
    return others if value in ("", {}) else {**others, resource: value}


def _value(field: str, text: str) -> Any:  # noqa: ANN401
    """The list, mapping, number or boolean that the text writes; otherwise the text."""
    if field in _LISTS:
        return [name for name in text.split(",") if name]
    if not text and field in (*_AMOUNTS, _AMOUNTS_BY_GROUP, _COUNTS):
        return {}
    if not text and field == "parent":
        return None
    return {"true": True, "false": False}.get(text, int(text) if text.removeprefix("-").isdecimal() else text)
