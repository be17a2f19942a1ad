"""The nodes of a stage as a drawing: a square for each GPU, with the number of the job that holds it."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, repeat

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from hekla.apps.demonstrations.stages import GPU, Stage
from hekla.apps.jobs.facts import spec_of
from hekla.pages.demonstrations.job_views import JobView


@dataclass(frozen=True, slots=True)
class DrawnNode:
    """A node. `holders`: for each of its GPUs the number of the job that holds it, or 0; `words`: the same in words."""

    name: str
    holders: tuple[int, ...]
    words: str


@dataclass(frozen=True, slots=True)
class DrawnRack:
    """Nodes that are close. `name`: empty on a stage without racks."""

    name: str
    nodes: tuple[DrawnNode, ...]


def racks(stage: Stage, views: Sequence[JobView]) -> list[DrawnRack]:
    """The racks with their nodes. Which GPU of a node a pod holds is not decided there, only how many."""
    held: dict[str, list[int]] = defaultdict(list)
    for view in views:
        tasks = {task.name: int(task.resources[GPU]) for task in spec_of(view.job).tasks}
        for pod in view.placed:
            held[pod.node] += repeat(view.number, tasks[pod.task])
    found: dict[str, list[DrawnNode]] = defaultdict(list)
    for name, gpus in stage.nodes():
        holders = tuple(chain(sorted(held[name]), repeat(0, gpus - len(held[name]))))
        found[stage.rack_of(name)].append(DrawnNode(name, holders, _words(holders)))
    return [DrawnRack(rack, tuple(nodes)) for rack, nodes in found.items()]


def _words(holders: Sequence[int]) -> str:
    numbers = [number for number in dict.fromkeys(holders) if number]
    parts = [
        ngettext("job %(job)s: %(count)s GPU", "job %(job)s: %(count)s GPUs", count) % {"job": number, "count": count}
        for number in numbers
        for count in [holders.count(number)]
    ]
    return ", ".join([*parts, _("free: %s") % holders.count(0)])
