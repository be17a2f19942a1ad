"""Files of other schedulers in the policy lab, on this machine and without a console."""

from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import click

from hekla.cli import output
from hekla.cli.failing import Failure
from hekla.cli.lab import print_result, read_changes
from hekla.domain.errors import Invalid
from hekla.domain.resources import InvalidQuantity, Resources
from hekla.engine.model import NodeSpec
from hekla.engine.policy import DEFAULT_POLICY_TEXT
from hekla.lib.text import strip_control_codes
from hekla.simulation.lab import experiment, process
from hekla.simulation.lab.change import read_change
from hekla.simulation.lab.experiment import Experiment
from hekla.simulation.lab.importers import FORMATS, InvalidTrace, read_trace
from hekla.simulation.lab.simulated_run import RunBroken

_MAX_NODES = 20_000


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@click.option("--format", "form", type=click.Choice([*FORMATS]), required=True, help="Format of FILE.")
@click.option(
    "--nodes",
    multiple=True,
    required=True,
    metavar="N:RESOURCE=AMOUNT,…",
    help="N nodes of this size, for example 16:cpu=96,memory=1Ti,nvidia.com/gpu=8. May be repeated.",
)
@click.option("--policy", type=click.File("rb"), help="File with the scheduling policy of the changed run.")
@click.option("--weight", "weights", multiple=True, metavar="QUEUE=N", help="Weight of a queue. May be repeated.")
@click.option("--capability", "limits", multiple=True, metavar="QUEUE:RESOURCE=N", help="Quota of a queue.")
@click.option("--add-nodes", multiple=True, metavar="NODE=N", help="N more nodes like NODE (kind-0-00000).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def trace(
    file: Path, form: str, nodes: tuple[str, ...], policy: BinaryIO | None, as_json: bool, **changes: tuple[str, ...]
) -> None:
    """Run the jobs of FILE under Hekla's default policy, and again with a change.

    Formats: sacct (`sacct --parsable2`), helios (cluster_log.csv), philly (cluster_job_log), alibaba (openb_pod_list).
    Queues are partitions, virtual clusters or classes of service; all weigh the same.
    """
    change = read_changes(removed=(), **changes)
    if policy is not None:
        change["policy"] = policy.read().decode(errors="replace")
    try:
        with file.open("rb") as opened:
            workload = read_trace(opened, form, _read_nodes(nodes))
        wanted = Experiment(workload, DEFAULT_POLICY_TEXT, read_change(change))
        result = experiment.report(wanted, process.finish_all(wanted, lambda _part: None))
    except (InvalidTrace, Invalid, RunBroken, OSError) as error:
        raise Failure(strip_control_codes(str(error))) from error
    if as_json:
        output.as_json(result)
    else:
        print_result(result)


def _read_nodes(texts: Sequence[str]) -> list[NodeSpec]:
    found: list[NodeSpec] = []
    for kind, text in enumerate(texts):
        count, _, amounts = text.partition(":")
        parts = dict(part.partition("=")[::2] for part in amounts.split(","))
        if not (count.isascii() and count.isdigit()) or not 1 <= int(count) <= _MAX_NODES - len(found):
            raise click.BadParameter(f"{text!r}: at most {_MAX_NODES:,} nodes.")
        try:
            size = Resources.parse({"pods": "110", **parts})
        except InvalidQuantity as error:
            raise click.BadParameter(str(error)) from error
        found += [NodeSpec(f"kind-{kind}-{at:05}", size) for at in range(int(count))]
    return found
