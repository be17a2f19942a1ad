"""The backend `simulated`: implements the contract without running anything.

A journal stores the orders; everything else follows from it and the time (`pod_plan`). `observe` reports changes since
a cursor, so a cluster of 100,000 pods without changes costs nothing.
"""

import heapq
import ipaddress
import itertools
import threading
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import repeat

from hekla.backends.base import (
    Backend,
    BackendError,
    Inventory,
    NodeInfo,
    NodeMetrics,
    Observations,
    PodKey,
    PodMetrics,
    PodOrder,
    UnknownPod,
)
from hekla.backends.kind import BackendContext
from hekla.backends.log_chunk import LogChunk
from hekla.backends.sequential import one_by_one
from hekla.backends.simulated.config import SimulatedConfig, device_facts
from hekla.backends.simulated.journal import Entry, SimulationJournal
from hekla.backends.simulated.node_usage import RequestsOfNodes, SimulatedNodeMeter
from hekla.backends.simulated.pod_plan import PodPlan, plan_pod, plan_tombstone
from hekla.backends.simulated.pod_usage import usage_of_pods
from hekla.domain.addresses import Replica
from hekla.domain.cluster_objects import ObjectFacts, ObjectKind
from hekla.domain.numa import NumaTopology, pin
from hekla.domain.phases import PodPhase

FIRST_ADDRESS = ipaddress.IPv4Address("10.64.0.1")
SLOTS = 2**22 - 2
MAX_RETAINED_CHANGES = 500_000
MIN_ENTRIES_TO_REWRITE = 10_000
_MILLI = 1000


class SimulatedBackend(Backend):
    """A simulated cluster. Any number of processes may open the same one; threads are serialized."""

    def __init__(self, config: SimulatedConfig, context: BackendContext) -> None:
        self._config = config
        nodes = [(node, entry.usage) for entry in config.nodes for node in entry.nodes()]
        self._nodes = tuple(node for node, _usage in nodes)
        self._meter = SimulatedNodeMeter(nodes, config.pod_usage)
        self._objects = tuple(map(device_facts, self._config.devices))
        self._budgets = tuple(one.facts() for one in self._config.disruption_budgets)
        self._runtime_classes = tuple(
            ObjectFacts.of(ObjectKind.RUNTIME_CLASS, name, {"overhead": {"podFixed": overhead}})
            for name, overhead in self._config.runtime_classes.items()
        )
        self._cells = {node.name: node.numa for node in self._nodes if node.numa}
        self._clock = context.clock
        self._journal = SimulationJournal(context.home / "simulated" / context.cluster / "journal.jsonl")
        self._turn = threading.Condition()
        self._reset()

    @property
    def runner(self) -> "SimulatedBackend":
        return self

    @property
    def node_meter(self) -> "SimulatedBackend":
        return self

    def nodes(self) -> Sequence[NodeInfo]:
        """The nodes of the configuration, with the CPUs that are free in their NUMA cells now."""
        if not self._cells:
            return self._nodes
        with self._turn:
            self._catch_up()
            return tuple(replace(node, numa=self._numa(node.name)) for node in self._nodes)

    def measure_nodes(self) -> Sequence[NodeMetrics]:
        """The usage in the configuration, and that of the running pods."""
        if not self._meter:
            return ()
        with self._turn:
            self._catch_up()
            now = self._now()
            self._pass_events(now)
            return self._meter.measure(self._requests, now)

    @property
    def metrics(self) -> "SimulatedBackend | None":
        """Only if the usage of some pod is described: nothing is stored about the others, which may be many."""
        return self if self._described else None

    def measure(self, keys: Sequence[PodKey]) -> Sequence[PodMetrics]:
        """The usage of those pods whose variables describe it."""
        with self._turn:
            self._catch_up()
            now = self._now()
            running = [self._pods[key] for key in self._described if self._pods[key].phase(now) is PodPhase.RUNNING]
        return usage_of_pods(self._config, running, self._described & set(keys), now)

    @property
    def objects(self) -> "SimulatedBackend":
        return self

    def list_objects(self, tenants: Collection[str]) -> Sequence[ObjectFacts]:  # noqa: ARG002  (all may use them)
        """The devices and claims of the configuration."""
        return self._objects

    @property
    def budgets(self) -> "SimulatedBackend":
        return self

    def list_budgets(self, tenants: Collection[str]) -> Sequence[ObjectFacts]:  # noqa: ARG002  (they are few)
        """The budgets of the configuration."""
        return self._budgets

    @property
    def runtime_classes(self) -> "SimulatedBackend":
        return self

    def list_runtime_classes(self) -> Sequence[ObjectFacts]:
        """Those of the configuration."""
        return self._runtime_classes

    def protected(
        self,
        keys: Sequence[PodKey],  # noqa: ARG002
        *,
        heartbeat: Callable[[], None],  # noqa: ARG002
    ) -> Mapping[PodKey, str]:
        """None: only the scheduler counts budgets here."""
        return {}

    def address(self, replica: Replica) -> str:
        """An address in a network that does not exist."""
        if not 0 <= replica.slot < SLOTS:
            raise ValueError(f"There are {SLOTS} slots, and no slot {replica.slot}")
        return str(FIRST_ADDRESS + replica.slot)

    def _start(self, order: PodOrder) -> None:
        """Record the pod's plan, unless it is recorded. Raises StartRefused if variables of the order are invalid."""
        course = plan_pod(order, self._config, self._now())
        with self._turn, self._journal.writing():
            self._catch_up()
            if order.key not in self._pods:
                self._write({"plan": _to_entry(replace(course, pinned=self._pin(order)))})

    def start_many(
        self, orders: Iterable[PodOrder], *, heartbeat: Callable[[], None]
    ) -> Iterator[tuple[PodOrder, BackendError | None]]:
        """Sequentially."""
        return one_by_one(self._start, orders, heartbeat)

    def _stop(self, request: tuple[PodKey, str]) -> None:
        """End the pod after `stop_seconds`, or after its grace period if that is less."""
        key, reason = request
        with self._turn, self._journal.writing():
            self._catch_up()
            now, course = self._now(), self._pods.get(key)
            delay = self._config.stop_seconds / self._config.speed
            ended = course.stopped(now, delay, reason) if course else plan_tombstone(key, now, reason)
            if ended != course:
                self._write({"plan": _to_entry(ended)})

    def stop_many(
        self, requests: Iterable[tuple[PodKey, str]], *, heartbeat: Callable[[], None]
    ) -> Iterator[tuple[tuple[PodKey, str], BackendError | None]]:
        """Sequentially."""
        return one_by_one(self._stop, requests, heartbeat)

    def observe(self, since: str | None) -> Observations:
        """All pods that are not forgotten, or those that changed after the cursor."""
        with self._turn:
            self._catch_up()
            now = self._now()
            self._pass_events(now)
            known = self._position(since)
            keys = self._unforgotten() if known is None else self._changed_since(known)
            self._reported = self._dropped + len(self._changes)
            pods = [self._pods[key].observe(now) for key in keys]
            return Observations(pods, cursor=f"{self._life}:{self._reported}", complete=known is None)

    def forget(self, keys: Sequence[PodKey]) -> None:
        """Stop reporting these pods."""
        with self._turn, self._journal.writing():
            self._catch_up()
            new = [list(_key_fields(key)) for key in keys if key in self._pods and key not in self._forgotten]
            if new:
                self._write({"forget": new})

    def wait(self, timeout_seconds: float) -> bool:
        """Block until an order in this process or the next event; returns True once for each, observed or not."""
        with self._turn:
            if not self._has_news():
                self._turn.wait(self._seconds_to_next_event(timeout_seconds))
            roused = self._has_news()
            self._roused = self._dropped + len(self._changes)
            return roused

    def plans_ending_after(self, seconds: float) -> list[PodPlan]:
        """The plans of the pods that end after this time of the epoch, for those who simulate the time as well."""
        with self._turn:
            self._catch_up()
            return [plan for plan in self._pods.values() if plan.ends_at > seconds]

    def logs(self, key: PodKey, *, offset: int, limit: int) -> LogChunk:
        """A generated log, which says that the pod is simulated."""
        course, now = self._known(key), self._now()
        text = course.log(now).encode()
        begin = min(max(offset, 0), len(text))
        data = text[begin : begin + limit]
        end = begin + len(data)
        return LogChunk(data, begin, end, complete=course.phase(now).is_final and end == len(text))

    def remove(self, job: str, *, tenant: str = "") -> None:  # noqa: ARG002
        """End the pods of the job now, and stop reporting them; their generated logs can still be read."""
        with self._turn, self._journal.writing():
            self._catch_up()
            now, keys = self._now(), self._jobs.get(job, set())
            for key in sorted(keys, key=_key_fields):
                ended = self._pods[key].stopped(now, 0.0, "Its job is removed")
                if ended != self._pods[key]:
                    self._write({"plan": _to_entry(ended)})
            if keys - self._forgotten:
                self._write({"forget": [list(_key_fields(key)) for key in keys - self._forgotten]})

    def remove_logs(self, job: str, *, tenant: str = "") -> None:  # noqa: ARG002
        """Delete the pods of the job from the journal."""
        with self._turn, self._journal.writing():
            self._catch_up()
            if job in self._jobs:
                self._write({"remove": job})
            if self._entries > 2 * len(self._pods) + MIN_ENTRIES_TO_REWRITE:
                self._journal.rewrite(self._as_entries())
                self._catch_up()

    def inventory(self, *, fresh: bool = True) -> Inventory:  # noqa: ARG002
        """From the journal and the time."""
        with self._turn:
            self._catch_up()
            now = self._now()
            alive = frozenset(key for key, course in self._pods.items() if not course.phase(now).is_final)
            present = frozenset(key.job for key in self._unforgotten())
            return Inventory(alive, present, frozenset(self._jobs))

    def close(self) -> None:
        """Nothing to release."""

    # The journal

    def _reset(self) -> None:
        self._pods: dict[PodKey, PodPlan] = {}
        self._jobs: dict[str, set[PodKey]] = {}
        self._pinned: dict[str, dict[PodKey, PodPlan]] = {}
        self._described: set[PodKey] = set()
        self._requests = RequestsOfNodes()
        self._forgotten: set[PodKey] = set()
        self._events: list[tuple[float, int, PodKey]] = []
        self._order = itertools.count()  # a tie-breaker for events at the same time: keys cannot be compared
        self._changes: list[PodKey] = []
        self._dropped = 0
        self._reported = self._roused = 0
        self._entries = 0
        self._life = uuid.uuid4().hex

    def _write(self, entry: Entry) -> None:
        self._journal.append([entry])
        self._catch_up()
        self._turn.notify_all()

    def _catch_up(self) -> None:
        anew, entries = self._journal.news()
        if anew:
            self._reset()
        for entry in entries:
            self._apply(entry)
        self._entries += len(entries)

    def _apply(self, entry: Entry) -> None:
        if "plan" in entry:
            self._set_course(_from_entry(entry["plan"]))
        elif "forget" in entry:
            self._forgotten.update(PodKey(*fields) for fields in entry["forget"])
        else:
            for key in self._jobs.pop(entry["remove"], ()):
                self._requests.update(self._pods.pop(key), is_running=False)
                self._described.discard(key)
                self._forgotten.discard(key)

    def _set_course(self, course: PodPlan) -> None:
        key = course.key
        self._pods[key] = course
        self._jobs.setdefault(key.job, set()).add(key)
        if course.gpu_load is not None:
            self._described.add(key)
        if course.pinned:
            self._pinned.setdefault(course.node, {})[key] = course
        self._changes.append(key)
        for at in (course.runs_at, course.ends_at):
            heapq.heappush(self._events, (at, next(self._order), key))

    def _as_entries(self) -> Iterator[Entry]:
        for course in self._pods.values():
            yield {"plan": _to_entry(course)}
        if self._forgotten:
            yield {"forget": [list(_key_fields(key)) for key in self._forgotten]}

    # NUMA cells

    def _numa(self, node: str) -> NumaTopology | None:
        """The cells of a node, with their free CPUs."""
        if (numa := self._cells.get(node)) is None:
            return None
        now, pinned = self._now(), self._pinned.get(node, {})
        for key in [key for key, course in pinned.items() if course.phase(now).is_final]:
            del pinned[key]
        held = [course.pinned for course in pinned.values() if len(course.pinned) == len(numa.cells)]
        used = map(sum, zip(*held, strict=True)) if held else repeat(0)
        return replace(
            numa, cells=tuple((cpus, cpus - part) for (cpus, _), part in zip(numa.cells, used, strict=False))
        )

    def _pin(self, order: PodOrder) -> tuple[int, ...]:
        """The CPUs that the pod gets of each cell. As in a kubelet, only pods that request whole CPUs are pinned."""
        numa, (cpus, rest) = self._numa(order.node), divmod(int(order.resources.amount("cpu")), _MILLI)
        return pin([free for _cpus, free in numa.cells], cpus) if numa and not rest else ()

    # Changes

    def _now(self) -> float:
        return self._clock().timestamp()

    def _pass_events(self, now: float) -> None:
        while self._events and self._events[0][0] <= now:
            key = heapq.heappop(self._events)[2]
            self._changes.append(key)
            if self._meter and (plan := self._pods.get(key)):
                self._requests.update(plan, is_running=plan.phase(now) is PodPhase.RUNNING)
        if len(self._changes) > MAX_RETAINED_CHANGES:
            self._dropped += len(self._changes)
            self._changes.clear()

    def _position(self, since: str | None) -> int | None:
        """The index of the cursor in the changes; None if all pods must be reported."""
        life, _, count = (since or "").partition(":")
        if life != self._life or not count.isdigit() or int(count) < self._dropped:
            return None
        return int(count) - self._dropped

    def _changed_since(self, position: int) -> list[PodKey]:
        changed = dict.fromkeys(self._changes[position:])
        return [key for key in changed if key in self._pods and key not in self._forgotten]

    def _unforgotten(self) -> list[PodKey]:
        return [key for key in self._pods if key not in self._forgotten]

    def _has_news(self) -> bool:
        self._catch_up()
        self._pass_events(self._now())
        return self._dropped + len(self._changes) > max(self._reported, self._roused)

    def _seconds_to_next_event(self, most: float) -> float:
        if not self._events:
            return most
        return max(0.0, min(most, self._events[0][0] - self._now()))

    def _known(self, key: PodKey) -> PodPlan:
        with self._turn:
            self._catch_up()
            if key not in self._pods:
                raise UnknownPod(f"There is no pod {key.name} here")
            return self._pods[key]


def _key_fields(key: PodKey) -> tuple[str, str, int, int]:
    return key.job, key.task, key.index, key.attempt


def _to_entry(course: PodPlan) -> Entry:
    return {**asdict(course), "key": _key_fields(course.key)}


def _from_entry(entry: Entry) -> PodPlan:
    return PodPlan(**{**entry, "key": PodKey(*entry["key"]), "pinned": tuple(entry.get("pinned", ()))})
