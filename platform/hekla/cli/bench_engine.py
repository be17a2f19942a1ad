"""`hekla bench engine`: how many pods a second the scheduling engine places, every node considered."""

import json
import platform
import statistics
import time

import click

from hekla.domain.phases import GangPhase
from hekla.domain.resources import Resources
from hekla.engine import cycle
from hekla.engine.model import ClusterState, Job, Node, Queue, Task
from hekla.engine.policy import DEFAULT_POLICY_TEXT, parse

_CORES_A_NODE, _GIB_A_NODE, _PODS_A_NODE = 32, 128, 110


@click.command("engine")
@click.option("--nodes", type=click.IntRange(1, 100_000), default=1000, show_default=True, help="Machines.")
@click.option("--pods", type=click.IntRange(1, 100_000), default=1000, show_default=True, help="Pods of one gang.")
@click.option("--repeat", type=click.IntRange(1, 1000), default=5, show_default=True, help="Cycles to measure.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def engine(nodes: int, pods: int, repeat: int, as_json: bool) -> None:
    """Place one gang on an empty cluster under the default policy, and time whole cycles."""
    state, policy = cluster(nodes, pods), parse(DEFAULT_POLICY_TEXT)
    placed = len(cycle(state, policy, 0.0).binds)
    seconds = []
    for _ in range(repeat):
        start = time.perf_counter()
        cycle(state, policy, 0.0)
        seconds.append(time.perf_counter() - start)
    middle = statistics.median(seconds)
    figures = {
        "nodes": nodes,
        "nodes_considered": nodes,
        "pods": pods,
        "placed": placed,
        "repeat": repeat,
        "cycle_seconds_median": round(middle, 6),
        "cycle_seconds": [round(each, 6) for each in seconds],
        "pods_per_second_median": round(placed / middle, 1),
        "python": platform.python_version(),
    }
    if as_json:
        click.echo(json.dumps(figures))
        return
    click.echo(f"{placed} of {pods} pods placed on {nodes} nodes, all of them considered for each pod")
    click.echo(f"{placed / middle:,.0f} pods/s, {middle:.3f} s a cycle (median of {repeat})")


def cluster(nodes: int, pods: int) -> ClusterState:
    """Equal empty machines, one queue, and one gang that is already let in and must start as a whole."""
    room = Resources.parse({"cpu": _CORES_A_NODE, "memory": f"{_GIB_A_NODE}Gi", "pods": _PODS_A_NODE})
    request = Resources.parse({"cpu": 1, "memory": "2Gi"})
    job = Job(
        uid="gang",
        name="gang",
        queue="default",
        min_available=pods,
        min_task_member={"worker": pods},
        min_resources=request * pods,
        phase=GangPhase.INQUEUE,
        tasks=tuple(Task(f"pod-{at}", f"gang-worker-{at}", "worker", request) for at in range(pods)),
    )
    return ClusterState(tuple(Node(f"node-{at:06}", room) for at in range(nodes)), (Queue("default"),), (job,))
