"""Limits on the cards of each model that a queue may hold, in Volcano's annotations.

The annotation `volcano.sh/card.quota` of a queue limits its cards by model: `{"NVIDIA-A100": 8, "NVIDIA-H100": 16}`. A
model that it does not name is limited to 0; a queue without the annotation has no limits. What child queues hold counts
for their parents too. A pod's annotation `volcano.sh/card.name` names the models that it may use, the best first:
`NVIDIA-H100|NVIDIA-A100`. Of several, nodes of the first score 100, of the next 50, 25 …, times `nodeOrderWeight` (1).

As in Volcano, preemption frees limits too: it evicts pods of the same queue on a node until the limit allows the pod.

In Volcano the annotation of the pod says which model it counts for, whatever its node has, and pods without it get no
cards. Here the node says it (`model_of`), for all pods. CPU and memory are limited by the plugins `capacity` and
`proportion`, which Volcano's plugin replaces.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Container, Hashable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from hekla.domain.card_resources import CARD_NAME, card_counts, model_of
from hekla.domain.queue_settings import CARD_QUOTA
from hekla.domain.resources import Resources
from hekla.domain.scheduling_inputs import Input
from hekla.domain.translation import gettext_noop
from hekla.engine.columns import Mask, NodeTable, Rows, Vector
from hekla.engine.extension_points import ExtensionPoint
from hekla.engine.inputs import Lack, Need
from hekla.engine.job_info import ALLOCATED, PodInfo
from hekla.engine.model import QueueSpec
from hekla.engine.node_fit import Refusal
from hekla.engine.policy import PluginOption
from hekla.engine.session import Session

Numbers = npt.NDArray[np.intp]
_BEST = 100.0
_WEIGHT = "nodeOrderWeight"
_MAX_NAMES = 64

NEEDS = (
    Need(Input.QUEUE_ANNOTATIONS, Lack.NOTHING, gettext_noop("Queues have no limits on cards.")),
    Need(Input.NODE_LABELS, Lack.REFUSES_SOME, gettext_noop("No node has a model, so limits on models allow no card.")),
    Need(Input.POD_ANNOTATIONS, Lack.PART, gettext_noop("Jobs cannot name the models that they may use.")),
)


def open_session(session: Session, option: PluginOption) -> None:
    """Refuse nodes whose model is at the limit of the pod's queue, or that the pod does not name."""
    models = _Models(session.table)
    quotas = _Quotas(session, models)
    weight = option.number(_WEIGHT, 1.0)

    def kind(pod: PodInfo) -> Hashable:
        return (quotas.queues_of(pod.job.group.queue), pod.spec.annotations.get(CARD_NAME, ""))

    def refuse(pod: PodInfo, _table: NodeTable) -> list[Refusal]:
        return [*_other_models(pod, models), *quotas.too_small(pod)]

    session.register(ExtensionPoint.TASK_CLASS, option, kind)
    session.register(ExtensionPoint.PREDICATE, option, refuse)
    session.register(ExtensionPoint.WIDE_NODE_ORDER, option, lambda pod, _table: _preference(pod, models, weight))
    if quotas.are_set:
        session.on_change.append(quotas.update)
        session.register(ExtensionPoint.WIDE_PREDICATE, option, lambda pod, _table: quotas.used_up(pod))


class _Models:
    """The models of all rows, as numbers, by the resource that counts the cards."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._of: dict[str, tuple[list[str], Numbers]] = {}

    def of(self, resource: str) -> tuple[list[str], Numbers]:
        """The models, and for each row the number of its model; -1 without such cards.

        Computed at the first pod that requests the resource.
        """
        if resource not in self._of:
            number: dict[str, int] = {}
            rows = np.full(len(self._table), -1, dtype=np.intp)
            for row, node in enumerate(self._table.nodes):
                if node.allocatable.get(resource):
                    rows[row] = number.setdefault(model_of(resource, node.labels), len(number))
            self._of[resource] = list(number), rows
        return self._of[resource]

    def name(self, resource: str, row: int) -> str:
        """The model of the cards of a row."""
        names, rows = self.of(resource)
        return names[rows[row]] if rows[row] >= 0 else resource

    def mask(self, resource: str, wanted: Container[str]) -> Mask:
        """The rows with one of these models."""
        names, rows = self.of(resource)
        found: Mask = np.isin(rows, [number for number, name in enumerate(names) if name in wanted])
        return found


def _wanted(pod: PodInfo) -> list[str]:
    """The models that the pod names."""
    text = pod.spec.annotations.get(CARD_NAME, "")
    return [name for part in text.split("|") if (name := part.strip())][:_MAX_NAMES]


def _other_models(pod: PodInfo, models: _Models) -> Iterator[Refusal]:
    if wanted := _wanted(pod):
        for resource in card_counts(pod.spec.request):
            yield Refusal(~models.mask(resource, wanted), "no card of its models")


def _preference(pod: PodInfo, models: _Models, weight: float) -> Callable[[Rows], Vector] | None:
    """Scores by the place of the node's model among those that the pod names; None if it names at most one."""
    wanted, resources = _wanted(pod), list(card_counts(pod.spec.request))
    if len(wanted) <= 1 or not resources:
        return None
    names, numbers = models.of(resources[0])
    worth = [_BEST * 0.5 ** wanted.index(name) * weight if name in wanted else 0.0 for name in names]
    scores = np.array([*worth, 0.0])[numbers]  # -1, the last one: no card
    return lambda rows: scores[rows]


class _Quotas:
    """What queues with limits hold of each model."""

    def __init__(self, session: Session, models: _Models) -> None:
        self._session, self._models = session, models
        self._limits = {
            name: limits for name, queue in session.queues.items() if (limits := _limits_of(queue)) is not None
        }
        self._held: dict[str, dict[str, float]] = {name: defaultdict(float) for name in self._limits}
        self._queues_of: dict[str, tuple[str, ...]] = {}
        if self._limits:
            self._count_placed()

    def _count_placed(self) -> None:
        """Count the pods that have a node: by queue and request first, because there may be a hundred thousand."""
        rows, requests = defaultdict[tuple[str, int], list[int]](list), dict[int, Resources]()
        row_of = self._session.table.row_of
        for job in self._session.jobs.values():
            queue = job.group.queue
            if not self.queues_of(queue) or not job.allocated.any():
                continue
            for pod in job.group.pods:
                row, key = row_of.get(pod.node), id(pod.request)
                if row is not None and pod.status in ALLOCATED:
                    rows[queue, key].append(row)
                    requests[key] = pod.request
        for (name, key), placed in rows.items():
            for resource, count in card_counts(requests[key]).items():
                names, numbers = self._models.of(resource)
                totals = np.bincount(numbers[placed] + 1, minlength=len(names) + 1)  # 0: rows without such cards
                for model, total in zip((resource, *names), totals.tolist(), strict=True):
                    for one in self.queues_of(name):
                        self._held[one][model] += count * total

    @property
    def are_set(self) -> bool:
        """Whether any queue has limits."""
        return bool(self._limits)

    def queues_of(self, name: str) -> tuple[str, ...]:
        """Those of the queue and its parents that have limits."""
        if name not in self._queues_of:
            path: list[str] = []
            above = name
            while above in self._session.queues and above not in path:
                path.append(above)
                above = self._session.queues[above].parent
            self._queues_of[name] = tuple(one for one in path if one in self._limits)
        return self._queues_of[name]

    def update(self, pod: PodInfo, row: int, sign: int) -> None:
        """Count a pod that was placed (sign 1) or removed (-1)."""
        self._count(pod.job.group.queue, pod.spec.request, row, sign)

    def _count(self, queue: str, request: Resources, row: int, sign: int) -> None:
        for name in self.queues_of(queue):
            for resource, count in card_counts(request).items():
                self._held[name][self._models.name(resource, row)] += sign * count

    def too_small(self, pod: PodInfo) -> Iterator[Refusal]:
        """Rows that a limit never allows for this pod."""
        for queue in self.queues_of(pod.job.group.queue):
            yield from self._over(queue, pod.spec.request, {}, "card quota too small", is_for_good=True)

    def used_up(self, pod: PodInfo) -> Callable[[], Sequence[Refusal]] | None:
        """Rows whose model is at a limit now; None if no limit applies to the pod."""
        queues, request = self.queues_of(pod.job.group.queue), pod.spec.request
        if not queues or not card_counts(request):
            return None
        return lambda: [
            refusal
            for queue in queues
            for refusal in self._over(queue, request, self._held[queue], "card quota used up", is_for_good=False)
        ]

    def _over(
        self, queue: str, request: Resources, held: Mapping[str, float], reason: str, *, is_for_good: bool
    ) -> Iterator[Refusal]:
        limits = self._limits[queue]
        for resource, count in card_counts(request).items():
            for name in self._models.of(resource)[0]:
                if not held.get(name, 0.0) + count <= limits.get(name, 0.0):
                    mask, why = self._models.mask(resource, [name]), f"{reason}: {name}"
                    yield Refusal(mask, why, is_unresolvable=is_for_good, needs_own_queue=True)


def _limits_of(queue: QueueSpec) -> dict[str, float] | None:
    """The limits of a queue; None if it has none. An annotation that cannot be read allows no card."""
    if CARD_QUOTA not in queue.annotations:
        return None
    try:
        return {str(name): float(count) for name, count in json.loads(queue.annotations[CARD_QUOTA]).items()}
    except (ValueError, TypeError, AttributeError, RecursionError):
        return {}
