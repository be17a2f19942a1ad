"""The policy lab: experiments on the recorded workload of a cluster."""

import sys
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, BinaryIO
from uuid import UUID

import click

from hekla.cli import output
from hekla.cli.client import Client, client_of
from hekla.cli.failing import Failure
from hekla.cli.servers import ServerOptions
from hekla.lib.text import strip_control_codes

_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_OVER = frozenset({"finished", "failed", "cancelled"})
_COLUMNS = ("recorded", "unchanged", "changed")
_LOOK_SECONDS = 1.0
_FIGURES = (
    ("jobs", "jobs"),
    ("finished", "finished"),
    ("wait_p50", "wait, median"),
    ("wait_p90", "wait, 90 %"),
    ("slowdown", "slowdown"),
    ("evictions", "evicted pods"),
    ("used_hours", "used hours"),
)


@click.command()
@click.argument("cluster")
@click.option("--days", type=click.FloatRange(0.01, 93), default=7, show_default=True, help="Days up to now.")
@click.option("--from", "starts", type=click.DateTime(), help="Begin of the period (UTC), instead of --days.")
@click.option("--until", "ends", type=click.DateTime(), help="End of the period (UTC). Default: now.")
@click.option("--trace", type=click.UUID, help="Run the jobs of this trace instead of a period (hekla lab traces).")
@click.option("--policy", type=click.File("rb"), help="File with another scheduling policy.")
@click.option("--weight", "weights", multiple=True, metavar="QUEUE=N", help="Weight of a queue. May be repeated.")
@click.option(
    "--capability", "limits", multiple=True, metavar="QUEUE:RESOURCE=N", help="Quota of a queue. May be repeated."
)
@click.option("--add-nodes", multiple=True, metavar="NODE=N", help="N more nodes like NODE. May be repeated.")
@click.option("--remove-node", "removed", multiple=True, metavar="NODE", help="Without this node. May be repeated.")
@click.option(
    "--plan", default="", metavar="NODE=MINUTES", help="Find how many more nodes like NODE keep 90 % of waits below."
)
@click.option("--plan-most", type=click.IntRange(1, 500), default=64, show_default=True, help="Most nodes of --plan.")
@click.option("--title", default="", help="What the experiment is about.")
@click.option("--no-wait", is_flag=True, help="Do not wait for the result.")
@_JSON
@click.pass_obj
def run(
    choice: ServerOptions,
    /,
    cluster: str,
    days: float,
    starts: datetime | None,
    ends: datetime | None,
    trace: UUID | None,
    policy: BinaryIO | None,
    plan: str,
    plan_most: int,
    title: str,
    no_wait: bool,
    as_json: bool,
    **changes: tuple[str, ...],
) -> None:
    """Run the recorded workload of CLUSTER again, or a trace on its nodes, with a change.

    Without a change, the result shows how exact runs are.

    Operators and platform admins.
    """
    until = ends.replace(tzinfo=UTC) if ends else datetime.now(UTC)
    since = starts.replace(tzinfo=UTC) if starts else until - timedelta(days=days)
    change = read_changes(**changes)
    if policy is not None:
        change["policy"] = policy.read().decode(errors="replace")
    if plan:
        node, minutes = _pair(plan)
        change["goal"] = {"like": node, "most": plan_most, "wait_p90": 60 * _number(minutes)}
    period = {"starts_at": since.isoformat(), "ends_at": until.isoformat()}
    if trace is not None:
        period = {"trace": str(trace)}
    client = client_of(choice)
    found = client.post("policy-lab", {"cluster": cluster, "title": title, "change": change, **period})
    if not no_wait:
        found = _finished(client, found["uid"], is_quiet=as_json)
    _print(found, as_json)


def read_changes(
    weights: Iterable[str], limits: Iterable[str], add_nodes: Iterable[str], removed: Iterable[str]
) -> dict[str, Any]:
    """The change of these options, as JSON for the console."""
    queues: dict[str, dict[str, Any]] = {}
    for name, number in map(_pair, weights):
        queues.setdefault(name, {})["weight"] = _number(number)
    for name, amount in map(_pair, limits):
        queue, _, resource = name.partition(":")
        queues.setdefault(queue, {}).setdefault("capability", {})[resource] = amount
    nodes = [{"like": name, "count": _number(number)} for name, number in map(_pair, add_nodes)]
    found = {"queues": queues, "nodes": nodes, "remove_nodes": list(removed)}
    return {name: value for name, value in found.items() if value}


def _pair(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign:
        raise click.BadParameter(f"{text!r} has no “=”.")
    return name, value


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise click.BadParameter(f"{text!r} is not a whole number.")
    return int(text)


def _finished(client: Client, uid: str, *, is_quiet: bool) -> dict[str, Any]:
    """The experiment once it is over."""
    while True:
        found: dict[str, Any] = client.get(f"policy-lab/{uid}")
        if not is_quiet and sys.stderr.isatty():
            click.echo(f"\r{found['state']} {found['progress']:.0%} ", err=True, nl=found["state"] in _OVER)
        if found["state"] in _OVER:
            return found
        time.sleep(_LOOK_SECONDS)


@click.command()
@click.option("--most", type=click.IntRange(1, 200), default=30, show_default=True, help="Maximum number of rows.")
@_JSON
@click.pass_obj
def list_experiments(choice: ServerOptions, most: int, as_json: bool) -> None:
    """List experiments, the newest first (operators and platform admins)."""
    found = client_of(choice).get("policy-lab", limit=most)
    if as_json:
        output.as_json(found)
        return
    rows = [
        (
            one["uid"],
            one["cluster"],
            output.moment(one["starts_at"]),
            output.moment(one["ends_at"]),
            one["state"] if one["state"] != "running" else f"running {one['progress']:.0%}",
            strip_control_codes(one["title"]) or "–",
        )
        for one in found
    ]
    output.table(("UID", "CLUSTER", "FROM", "UNTIL", "STATE", "TITLE"), rows, "No experiments.")


@click.command()
@click.argument("uid", type=click.UUID)
@_JSON
@click.pass_obj
def show(choice: ServerOptions, uid: str, as_json: bool) -> None:
    """Show the experiment UID, with its result if it is finished."""
    _print(client_of(choice).get(f"policy-lab/{uid}"), as_json)


@click.command()
@click.argument("uid", type=click.UUID)
@click.pass_obj
def cancel(choice: ServerOptions, uid: str) -> None:
    """Cancel the experiment UID, which waits or runs."""
    client_of(choice).post(f"policy-lab/{uid}/cancel", {})
    click.echo("Cancelled.")


@click.command()
@click.argument("uid", type=click.UUID)
@click.pass_obj
def delete(choice: ServerOptions, uid: str) -> None:
    """Delete the experiment UID, which is over."""
    client_of(choice).delete(f"policy-lab/{uid}")
    click.echo("Deleted.")


def _print(found: Mapping[str, Any], as_json: bool) -> None:
    """Raises Failure if the experiment failed."""
    if as_json:
        output.as_json(found)
    elif result := found.get("result"):
        print_result(result)
    else:
        click.echo(f"{found['uid']}  {found['state']}")
    if found["state"] == "failed":
        raise Failure(strip_control_codes(found["problem"]))


def print_result(result: Mapping[str, Any]) -> None:
    """Print the columns of an experiment side by side."""
    columns = {name: result["columns"][name] for name in _COLUMNS if name in result["columns"]}
    rows = [(label, *(_value(name, one["total"][name]) for one in columns.values())) for name, label in _FIGURES]
    rows += [
        ("use", *(f"{one['use']:.1%}" for one in columns.values())),
        ("fairness", *(_value("fairness", one["fairness"]) for one in columns.values())),
        ("makespan", *(output.seconds(one["makespan"] * 3600) for one in columns.values())),
    ]
    output.table(("", *(name.upper() for name in columns)), rows, "")
    for part in ("queues", "tenants"):
        _print_part(part, columns)
    if found := result.get("plan"):
        _print_plan(found)
    if trust := result["trust"]:
        _print_trust(trust)
    if (found := result.get("forecasts")) and found["cases"]:
        part = found["held"] / found["cases"]
        click.echo(f"{found['held']:,} of {found['cases']:,} predicted start times held ({part:.1%}).")
    for note, count in result["notes"].items():
        click.echo(f"note: {note.replace('_', ' ')} ({count})")


def _print_plan(plan: Mapping[str, Any]) -> None:
    click.echo()
    rows = [
        (str(one["count"]), _value("wait_p90", one["wait_p90"]), "yes" if one["is_enough"] else "no")
        for one in sorted(plan["trials"], key=lambda one: int(one["count"]))
    ]
    output.table(("MORE NODES", "WAIT 90 %", "ENOUGH"), rows, "")
    needed = f"More than {plan['most']:,}" if plan["count"] is None else f"{plan['count']:,}"
    click.echo(f"{needed} more nodes like {strip_control_codes(plan['like'])} are needed.")


def _print_part(part: str, columns: Mapping[str, Any]) -> None:
    names = list(dict.fromkeys(name for one in columns.values() for name in one[part]))
    rows = [(strip_control_codes(name), *(_waits(one[part].get(name)) for one in columns.values())) for name in names]
    click.echo()
    output.table((f"{part.upper()}: WAIT 50/90 %", *(name.upper() for name in columns)), rows, "")


def _waits(figures: Mapping[str, Any] | None) -> str:
    if figures is None:
        return "–"
    return " / ".join(_value(name, figures[name]) for name in ("wait_p50", "wait_p90"))


def _value(name: str, value: float | None) -> str:
    if value is None:
        return "–"
    if name.startswith("wait"):
        return output.seconds(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"


def _print_trust(trust: Mapping[str, Any]) -> None:
    click.echo()
    if trust["binds"]:
        part = trust["equal_binds"] / trust["binds"]
        click.echo(
            f"The unchanged run bound {trust['equal_binds']:,} of {trust['binds']:,} pods as recorded ({part:.1%})."
        )
    if trust["error_p50"] is not None:
        median, most = output.seconds(trust["error_p50"]), output.seconds(trust["error_p90"])
        click.echo(f"Its waits differ by {median} (median) and {most} (90 % of the jobs) from the recorded ones.")
