"""The `task-topology` plugin: affinities between the roles of a job."""

from dataclasses import replace

import pytest
from tests.engine import builders

from hekla.domain.resources import Resources
from hekla.engine.decisions import Decisions
from hekla.engine.model import PodGroupSpec, PodSpec, PodStatus
from hekla.engine.plugins.task_topology.relations import Relations
from hekla.engine.policy import parse

POLICY = parse("""\
actions: allocate
tiers:
- plugins:
  - name: gang
- plugins:
  - name: predicates
  - name: task-topology
""")
NOTE = "volcano.sh/task-topology-"


def roles(
    together: str = "", apart: str = "", order: str = "", minimum: int | None = None, **counts: int
) -> PodGroupSpec:
    """A job with `counts` pods of each role, one core each."""
    one = Resources.parse({"cpu": "1"})
    tasks = tuple(PodSpec(f"{role}-{i}", f"j-{role}-{i}", role, one) for role, n in counts.items() for i in range(n))
    notes = {f"{NOTE}affinity": together, f"{NOTE}anti-affinity": apart, f"{NOTE}task-order": order}
    job = builders.job("j", minimum=len(tasks) if minimum is None else minimum)
    return replace(job, pods=tasks, min_task_member={}, annotations={k: v for k, v in notes.items() if v})


def decide(job: PodGroupSpec, nodes: int = 3, cpu: str = "4") -> Decisions:
    return builders.decide([builders.node("abcdef"[i], cpu) for i in range(nodes)], [job], policy=POLICY)


def by_node(decisions: Decisions) -> list[list[str]]:
    """The sorted roles on each node, without the names of nodes and pods."""
    roles_by_node: dict[str, list[str]] = {}
    for bind in decisions.binds:
        roles_by_node.setdefault(bind.node, []).append(bind.pod.partition("-")[0])
    return sorted(sorted(found) for found in roles_by_node.values())


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        (roles(together="ps,worker", apart="ps", ps=2, worker=4), [["ps", "worker", "worker"]] * 2),
        (roles(apart="ps", ps=3), [["ps"]] * 3),
        (roles(together="worker", worker=4), [["worker"] * 4]),
        (roles(together="ps,worker", ps=1, worker=3), [["ps", "worker", "worker", "worker"]]),
        (roles(apart="ps,worker", ps=2, worker=2), [["ps", "ps"], ["worker", "worker"]]),
    ],
)
def test_roles_follow_their_affinities(job: PodGroupSpec, expected: list[list[str]]) -> None:
    assert by_node(decide(job)) == expected


def test_bucket_is_placed_where_all_of_it_fits() -> None:
    nodes = [builders.node("a", "2"), builders.node("b", "3"), builders.node("c", "4")]
    decisions = builders.decide(nodes, [roles(together="worker", worker=4)], policy=POLICY)
    assert {bind.node for bind in decisions.binds} == {"c"}


def test_largest_bucket_is_first_and_roles_follow_their_order() -> None:
    job = roles(together="a,b", order="b,a", minimum=1, c=1, a=1, b=2)
    assert [bind.pod for bind in decide(job).binds] == ["b-0", "b-1", "a-0", "c-0"]


def test_running_pods_attract_the_others() -> None:
    job = roles(together="ps,worker", minimum=1, ps=1, worker=2)
    ran = replace(job.pods[0], status=PodStatus.RUNNING, node="b")
    decisions = decide(replace(job, pods=(ran, *job.pods[1:])))
    assert {bind.node for bind in decisions.binds} == {"b"}


def test_discarded_placements_do_not_count() -> None:
    first = replace(roles(together="worker", worker=4), uid="a", pods=roles(together="worker", worker=9).pods)
    decisions = decide(replace(first, min_available=9), nodes=2)
    assert not decisions.binds


@pytest.mark.parametrize("text", ["", "ps,ps", "ps,unheard-of", ";", ","])
def test_invalid_relations_are_ignored(text: str) -> None:
    assert not Relations(roles(together=text, ps=1)).concern_any
