"""What one may rely on where the roles of a job want to be near each other or apart."""

from dataclasses import replace

import pytest
from tests.engine import worlds

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
    """A job of pods of one core, so many of each role."""
    one = Resources.parse({"cpu": "1"})
    tasks = tuple(PodSpec(f"{role}-{i}", f"j-{role}-{i}", role, one) for role, n in counts.items() for i in range(n))
    notes = {f"{NOTE}affinity": together, f"{NOTE}anti-affinity": apart, f"{NOTE}task-order": order}
    job = worlds.job("j", minimum=len(tasks) if minimum is None else minimum)
    return replace(job, pods=tasks, min_task_member={}, annotations={k: v for k, v in notes.items() if v})


def decide(job: PodGroupSpec, nodes: int = 3, cpu: str = "4") -> Decisions:
    return worlds.decide([worlds.node("abcdef"[i], cpu) for i in range(nodes)], [job], policy=POLICY)


def by_node(decisions: Decisions) -> list[list[str]]:
    """The roles on each node, as they are when nobody cares for the names of nodes and pods."""
    places: dict[str, list[str]] = {}
    for bind in decisions.binds:
        places.setdefault(bind.node, []).append(bind.pod.partition("-")[0])
    return sorted(sorted(there) for there in places.values())


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
def test_roles_come_to_be_where_they_want(job: PodGroupSpec, expected: list[list[str]]) -> None:
    assert by_node(decide(job)) == expected


def test_a_bucket_goes_where_all_of_it_fits() -> None:
    nodes = [worlds.node("a", "2"), worlds.node("b", "3"), worlds.node("c", "4")]
    decisions = worlds.decide(nodes, [roles(together="worker", worker=4)], policy=POLICY)
    assert {bind.node for bind in decisions.binds} == {"c"}


def test_the_largest_bucket_is_placed_first_and_roles_in_their_order() -> None:
    job = roles(together="a,b", order="b,a", minimum=1, c=1, a=1, b=2)
    assert [bind.pod for bind in decide(job).binds] == ["b-0", "b-1", "a-0", "c-0"]


def test_tasks_that_run_draw_the_others() -> None:
    job = roles(together="ps,worker", minimum=1, ps=1, worker=2)
    ran = replace(job.pods[0], status=PodStatus.RUNNING, node="b")
    decisions = decide(replace(job, pods=(ran, *job.pods[1:])))
    assert {bind.node for bind in decisions.binds} == {"b"}


def test_what_was_tried_in_vain_counts_for_nothing() -> None:
    first = replace(roles(together="worker", worker=4), uid="a", pods=roles(together="worker", worker=9).pods)
    decisions = decide(replace(first, min_available=9), nodes=2)
    assert not decisions.binds


@pytest.mark.parametrize("text", ["", "ps,ps", "ps,unheard-of", ";", ","])
def test_relations_that_make_no_sense_are_as_none(text: str) -> None:
    assert not Relations(roles(together=text, ps=1)).concern_any
