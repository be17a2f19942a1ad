"""Commands that show jobs."""

import sys
from collections.abc import Mapping
from typing import Any

import click

from hekla.cli import output
from hekla.cli.client import Client, client_of
from hekla.cli.completion import JOB
from hekla.cli.job_filters import listing
from hekla.cli.servers import ServerOptions
from hekla.cli.watch import follow
from hekla.lib.text import strip_control_codes

_GROUPS = ("phase", "queue", "tenant", "owner", "kind", "cluster")


@click.command()
@listing
@click.option("--group-by", type=click.Choice(_GROUPS), help="Count the jobs per group.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="Maximum number of rows.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def list_jobs(choice: ServerOptions, /, group_by: str | None, limit: int, as_json: bool, **filters: Any) -> None:  # noqa: ANN401
    """List jobs, newest first."""
    client = client_of(choice)
    if group_by:
        _count(client, group_by, filters, as_json=as_json)
    else:
        _list(client, limit, filters, as_json=as_json)


def _count(client: Client, by: str, filters: dict[str, Any], *, as_json: bool) -> None:
    found = client.get("jobs/groups", by=by, **filters)["groups"]
    if as_json:
        output.as_json(found)
        return
    rows = [
        (output.phase(g["name"]) if by == "phase" else g["name"], g["jobs"], g["alive"], g["failed"]) for g in found
    ]
    output.table((by.upper(), "JOBS", "UNFINISHED", "FAILED"), rows, "No matching jobs.")


def _list(client: Client, limit: int, filters: dict[str, Any], *, as_json: bool) -> None:
    found = client.pages("jobs", limit, **filters)
    if as_json:
        output.as_json(found)
        return
    heads = ("NAME", "PHASE", "TENANT", "QUEUE", "PODS", "OWNER", "SUBMITTED")
    rows = [
        (j["name"], output.phase(j["phase"]), j["tenant"], _queue(j), j["replicas"], j["owner"], _when(j))
        for j in found
    ]
    output.table(heads, rows, "No matching jobs. `hekla job submit FILE` submits one.")


@click.command()
@click.argument("name", metavar="JOB", type=JOB)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def show(choice: ServerOptions, name: str, as_json: bool) -> None:
    """Show JOB (a name or uid): its state, its pods, and the pending reason."""
    client = client_of(choice)
    found = client.job(name)
    if as_json:
        output.as_json(found)
        return
    for label, value in _facts(found):
        click.echo(f"{label:<10} {value}")
    if found["notice"]:
        click.echo(f"{'Cluster':<10} {found['notice']}")
    for reason in found["waiting"]:
        click.echo(f"{'Pending':<10} {reason['sentence']}")
    for sentence in client.start_estimate(found)["text"] if found["waiting"] else ():
        click.echo(f"{'Start':<10} {sentence}")
    is_scaled = not found["finished_at"] and any(task.get("autoscaling") for task in found["spec"]["tasks"])
    for one in client.autoscaling(found) if is_scaled else ():
        click.echo(f"{'Scaling':<10} {one['task']}: {one['min_replicas']} to {one['max_replicas']}. {one['sentence']}")
    click.echo()
    has_cpus = any(pod["cpus"] for pod in found["pods"])
    own_cpus = ("OWN CPUS",) if has_cpus else ()
    heads = ("POD", "PHASE", "ATTEMPT", "NODE", "CARDS", *own_cpus, "EXIT", "STARTED", "MESSAGE")
    rows = [
        (
            f"{pod['task']}-{pod['index']}",
            output.phase(pod["phase"]),
            pod["attempt"],
            pod["node"] or "–",
            output.cards(pod["cards"]) or "–",
            *((pod["cpus"] or "–",) if has_cpus else ()),
            "–" if pod["exit_code"] is None else pod["exit_code"],
            output.moment(pod["started_at"]),
            strip_control_codes(pod["message"])[:80],
        )
        for pod in found["pods"]
    ]
    output.table(heads, rows, "It has no pods yet.")


@click.command()
@click.argument("name", metavar="JOB", type=JOB)
@click.pass_obj
def watch(choice: ServerOptions, name: str) -> None:
    """Follow JOB (a name or uid) until it ends. The exit status is 0 if it completed."""
    client = client_of(choice)
    sys.exit(follow(client, client.job(name)))


def _facts(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    why = strip_control_codes(": ".join(filter(None, (found["reason"], found["message"]))))
    return [
        ("Job", f"{found['name']}  ({found['uid']})"),
        ("Phase", output.phase(found["phase"]) + (f"  {why}" if why else "")),
        ("Tenant", f"{found['tenant']}, submitted by {found['owner']}"),
        ("Queue", _queue(found)),
        *_placement(found["placement"]),
        ("Submitted", output.moment(found["submitted_at"])),
        ("Started", output.moment(found["started_at"])),
        ("Deadline", output.moment(found["deadline_at"])),
        ("Restarts", output.moment(found["restart_at"])),
        ("Finished", output.moment(found["finished_at"])),
        *_deletion(found),
    ]


def _placement(found: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """Why it is on this cluster of a federated queue."""
    if found is None:
        return []
    how = "Moved" if found["moves"] else "Sent"
    head = f"{how} by {found['federated_queue'] or 'a name that is deleted'} {output.moment(found['at'])}"
    return [
        ("Cluster", head),
        *(("", f"{one['cluster']}: {strip_control_codes(one['sentence'])}") for one in found["candidates"]),
    ]


def _deletion(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    """When it was or will be deleted, and how long its logs and history are kept."""
    if not found["deleted_at"]:
        return [("Deleted", f"by itself {output.moment(found['expires_at'])}")] if found["expires_at"] else []
    logs = f"until {output.moment(found['logs_until'])}" if found["logs_until"] else "gone"
    return [
        ("Deleted", output.moment(found["deleted_at"])),
        ("Kept", f"logs {logs}, history until {output.moment(found['history_until'])}"),
    ]


def _queue(found: Mapping[str, Any]) -> str:
    return f"{found['queue']} (simulated)" if found["is_simulated"] else str(found["queue"])


def _when(found: dict[str, Any]) -> str:
    return output.moment(found["submitted_at"])
