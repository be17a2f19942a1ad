"""Which jobs a run of the unchanged policy bound elsewhere than recorded, and what the record lacks about them."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from hekla.simulation.lab.workload import History, Workload, WorkloadJob

MOST_LISTED = 50


class DifferenceCause(StrEnum):
    """Why a job differs, where its own record does not say (`RecordGap`)."""

    AFTER = "after"
    """A job before it differs, and so the resources that were free."""
    NODES = "nodes"
    """The history of nodes is not recorded."""
    MOMENT = "moment"
    """It was decided in the same moment as something else, and the order is not recorded."""


@dataclass(frozen=True, slots=True)
class JobDifference:
    """A job with other binds. `at`: the first recorded bind that differs, in milliseconds. `recorded`, `simulated`: its
    node; empty: none. `causes`: values of `RecordGap` and `DifferenceCause`.
    """

    uid: str
    name: str
    tenant: str
    at: int
    recorded: str
    simulated: str
    causes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Differences:
    """The jobs that differ, in the order of time; `listed` has the first of them."""

    jobs: int
    listed: tuple[JobDifference, ...]


def differences(workload: Workload, histories: Mapping[str, History], *, lacks_nodes: bool) -> Differences:
    """The jobs of the period whose recorded binds the run did not repeat. `lacks_nodes`: their history is unknown."""
    found = sorted(_found(workload, histories), key=lambda one: (one[1], one[0].uid))
    listed = []
    for number, (job, at, recorded, simulated) in enumerate(found[:MOST_LISTED]):
        causes = tuple(map(str, job.gaps))
        if not causes and lacks_nodes:
            causes = (DifferenceCause.NODES.value,)
        if not causes:
            causes = ((DifferenceCause.AFTER if number else DifferenceCause.MOMENT).value,)
        listed.append(JobDifference(job.uid, job.group.name, job.tenant, at, recorded, simulated, causes))
    return Differences(len(found), tuple(listed))


def _found(workload: Workload, histories: Mapping[str, History]) -> Iterator[tuple[WorkloadJob, int, str, str]]:
    for job in workload.counted():
        simulated = nodes_of(histories[job.uid])
        first: tuple[int, str, str] | None = None
        for pod, binds in _binds(job.history).items():
            others = simulated.get(pod, [])
            for number, (at, node) in enumerate(binds):
                other = others[number] if number < len(others) else ""
                if other != node and (first is None or at < first[0]):
                    first = at, node, other
        if first is not None:
            yield job, *first


def _binds(history: History) -> dict[int, list[tuple[int, str]]]:
    found: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for one in history.binds:
        found[one.pod].append((one.at, one.node))
    return found


def nodes_of(history: History) -> dict[int, list[str]]:
    """The nodes of each pod, in order."""
    return {pod: [node for _at, node in binds] for pod, binds in _binds(history).items()}
