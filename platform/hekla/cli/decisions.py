"""The scheduler's decisions: recorded cycles, and their replay on this machine."""

from pathlib import Path
from typing import Any

import click
import orjson

from hekla.cli import output
from hekla.cli.client import client_of
from hekla.cli.failing import Failure
from hekla.cli.saving import save_new
from hekla.cli.servers import ServerOptions
from hekla.domain.errors import Invalid
from hekla.lib.text import strip_control_codes
from hekla.scheduling import cycle_replay
from hekla.scheduling.column_codec import InvalidRecord
from hekla.scheduling.cycle_document import MAX_BYTES, RecordedCycle, read

_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.command()
@click.argument("cluster")
@click.option("--most", type=click.IntRange(1, 200), default=30, show_default=True, help="Maximum number of rows.")
@_JSON
@click.pass_obj
def list_cycles(choice: ServerOptions, cluster: str, most: int, as_json: bool) -> None:
    """List the cycles of CLUSTER that decided something, the newest first (operators and platform admins)."""
    found = client_of(choice).get(f"clusters/{cluster}/cycles", limit=most)
    if as_json:
        output.as_json(found)
        return
    numbers = ("jobs", "admissions", "binds", "evictions", "pipelined")
    rows = [
        (
            str(one["id"]),
            output.moment(one["at"]),
            one["trigger"],
            f"{one['engine_ms']:.1f}",
            *(str(one[name]) for name in numbers),
            one["omission"] or one["limit"] or "–",
        )
        for one in found
    ]
    heads = ("ID", "TIME", "REASON", "MS", "JOBS", "ADMITTED", "BINDS", "EVICTIONS", "PIPELINED", "NOTE")
    output.table(heads, rows, "No recorded cycles.")


@click.command()
@click.argument("cycle", type=click.IntRange(1))
@click.option("--job", type=click.IntRange(1), help="Number of a job in the cycle: show how it was judged.")
@_JSON
@click.pass_obj
def show(choice: ServerOptions, cycle: int, job: int | None, as_json: bool) -> None:
    """Show what each action of CYCLE (an id) did, or how the cycle judged a job."""
    found = client_of(choice).get(f"cycles/{cycle}" if job is None else f"cycles/{cycle}/jobs/{job}")
    if as_json:
        output.as_json(found)
    elif job is None:
        _print_cycle(found)
    else:
        _print_job(found)


@click.command()
@click.argument("cycle", type=click.IntRange(1))
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.pass_obj
def download(choice: ServerOptions, cycle: int, file: Path) -> None:
    """Save CYCLE (an id) as FILE, one JSON document with the engine's whole input."""
    save_new(client_of(choice).read_bytes(f"cycles/{cycle}/file"), file)


@click.command()
@click.argument("cycle", metavar="FILE|ID")
@_JSON
@click.pass_context
def replay_cycle(ctx: click.Context, cycle: str, as_json: bool) -> None:
    """Run the engine on a recorded cycle, on this machine, and compare its decisions with the recorded ones.

    A number is a cycle of the console. The exit status is 1 if a decision differs.
    """
    found = _replay(_read(ctx.obj, cycle))
    outcome = found.cycle.outcome
    if as_json:
        output.as_json(
            {
                "is_equal": found.is_equal,
                "binds": len(outcome.binds),
                "evictions": len(outcome.evictions),
                "pipelined": len(outcome.pipelined),
                "differences": [[one.part, one.decision, one.is_recorded] for one in found.differences],
            }
        )
    else:
        _print_comparison(found)
    ctx.exit(0 if found.is_equal else 1)


def _read(choice: ServerOptions, cycle: str) -> RecordedCycle:
    """The cycle of a file, or of the console. Raises Failure."""
    path = Path(cycle)
    try:
        if cycle.isdigit() and not path.exists():
            text = b"".join(client_of(choice).read_bytes(f"cycles/{cycle}/file"))
        elif path.stat().st_size > MAX_BYTES:
            raise Failure(f"{path} is too large.")
        else:
            text = path.read_bytes()
        return read(orjson.loads(text))
    except (OSError, orjson.JSONDecodeError, InvalidRecord) as error:
        raise Failure(strip_control_codes(f"{cycle} cannot be read: {error}")) from error


def _replay(cycle: RecordedCycle) -> cycle_replay.CycleReplay:
    try:
        return cycle_replay.replay(cycle)
    except Invalid as error:
        raise Failure(strip_control_codes(f"The recorded policy is not valid here: {error}")) from error


def _print_comparison(found: cycle_replay.CycleReplay) -> None:
    outcome = found.cycle.outcome
    counts = f"{len(outcome.binds)} binds, {len(outcome.evictions)} evictions, {len(outcome.pipelined)} pipelined"
    if found.is_equal:
        click.echo(f"Equal: {counts}.")
        return
    click.secho(f"Different. Recorded: {counts}.", fg="red")
    for one in found.differences:
        click.echo(strip_control_codes(f"{'recorded' if one.is_recorded else 'replayed'}  {one.part}  {one.decision}"))


def _print_cycle(found: dict[str, Any]) -> None:
    click.echo("The replay equals the record." if found["is_equal"] else "The replay differs from the record.")
    rows = [
        (action["name"], step["job"]["uid"], strip_control_codes(step["job"]["name"]), step["job"]["queue"], _did(step))
        for action in found["actions"]
        for step in action["steps"]
    ]
    output.table(("ACTION", "NUMBER", "JOB", "QUEUE", "VERDICT"), rows, "No action changed anything.")
    for one in found["waiting"]:
        click.echo(strip_control_codes(f"{one['job']['name']} waits: {' '.join(one['reasons'])}"))


def _did(step: dict[str, Any]) -> str:
    words = ["admitted"] if step["is_admitted"] else []
    words += [f"{step[name]} {name}" for name in ("placed", "promised", "evicted") if step[name]]
    return ", ".join(words) or "tried, no change"


def _print_job(found: dict[str, Any]) -> None:
    for sentence in found["reasons"]:
        click.echo(strip_control_codes(sentence))
    for examined in found["examinations"]:
        click.echo(strip_control_codes(f"{examined['action']}: nodes for {examined['pod']}"))
        rows = [(one["node"], _score(one), strip_control_codes(_why(one))) for one in examined["nodes"]]
        output.table(("NODE", "SCORE", "JUDGED BY"), rows, "No nodes.")
    rows = [
        (one["victim"], one["node"], "may be evicted" if one["is_allowed"] else f"spared by {one['spared_by'] or '–'}")
        for one in found["victims"]
    ]
    if rows:
        output.table(("VICTIM", "NODE", "VERDICT"), rows, "")


def _score(node: dict[str, Any]) -> str:
    return "refused" if node["total"] is None else f"{node['total']:.2f}{' chosen' if node['is_chosen'] else ''}"


def _why(node: dict[str, Any]) -> str:
    if node["total"] is None:
        return "; ".join(
            [*(": ".join(veto) for veto in node["vetoes"]), *(f"too little {one}" for one in node["short"])]
        )
    return ", ".join(f"{name} {score:.2f}" for name, score in node["scores"].items() if score)
