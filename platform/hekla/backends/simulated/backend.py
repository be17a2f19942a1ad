"""The backend `simulated`: keeps the contract, runs nothing.

What was ordered is in a journal; everything else follows from it and the time (`pods`). `observe` tells what changed
since a cursor, so that a cluster of 100,000 pods at rest costs nothing.
"""

import heapq
import ipaddress
import itertools
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hekla.backends import config as configuration
from hekla.backends.base import (
    BackendError,
    Capabilities,
    Inventory,
    LogChunk,
    NodeInfo,
    NotHere,
    Observations,
    PodKey,
    PodOrder,
    UnknownPod,
    Use,
    one_by_one,
)
from hekla.backends.lines import Command, Line
from hekla.backends.simulated.config import SimulatedConfig
from hekla.backends.simulated.journal import Entry, Journal
from hekla.backends.simulated.pods import Plan, never_started, plan
from hekla.domain.addresses import Replica
from hekla.lib.clock import Clock

FIRST_ADDRESS = ipaddress.IPv4Address("10.64.0.1")
SLOTS = 2**22 - 2
MAX_CHANGES_KEPT = 500_000
MIN_ENTRIES_TO_REWRITE = 10_000


class SimulatedBackend:
    """Implements `base.Backend`. Any number of processes may open the same cluster; threads take turns."""

    capabilities = Capabilities(simulated=True, enforces_limits=False, has_endpoints=False)

    def __init__(self, *, cluster: str, config: Mapping[str, Any], home: Path, clock: Clock) -> None:
        self._config = configuration.read(SimulatedConfig, config)
        self._nodes = tuple(node for entry in self._config.nodes for node in entry.nodes())
        self._clock = clock
        self._journal = Journal(home / "simulated" / cluster / "journal.jsonl")
        self._turn = threading.Condition()
        self._reset()

    def nodes(self) -> Sequence[NodeInfo]:
        """The nodes of the description."""
        return self._nodes

    def address(self, replica: Replica) -> str:
        """An address of a network that is not there."""
        if not 0 <= replica.slot < SLOTS:
            raise ValueError(f"There are {SLOTS} slots, and no slot {replica.slot}")
        return str(FIRST_ADDRESS + replica.slot)

    def start(self, order: PodOrder) -> None:
        """Put the pod's course down, unless it is. Raises StartRefused where the order's own wishes are no numbers."""
        course = plan(order, self._config, self._now())
        with self._turn, self._journal.writing():
            self._catch_up()
            if order.key not in self._pods:
                self._write({"plan": _to_entry(course)})

    def start_many(
        self, orders: Iterable[PodOrder], *, meanwhile: Callable[[], None]
    ) -> Iterator[tuple[PodOrder, BackendError | None]]:
        """In order."""
        return one_by_one(self.start, orders, meanwhile)

    def stop(self, key: PodKey, *, reason: str) -> None:
        """It ends after `stop_seconds`, or its grace where that is less."""
        with self._turn, self._journal.writing():
            self._catch_up()
            now, course = self._now(), self._pods.get(key)
            delay = self._config.stop_seconds / self._config.speed
            ended = course.stopped(now, delay, reason) if course else never_started(key, now, reason)
            if ended != course:
                self._write({"plan": _to_entry(ended)})

    def stop_many(
        self, wishes: Iterable[tuple[PodKey, str]], *, meanwhile: Callable[[], None]
    ) -> Iterator[tuple[tuple[PodKey, str], BackendError | None]]:
        """In order."""
        return one_by_one(lambda wish: self.stop(wish[0], reason=wish[1]), wishes, meanwhile)

    def observe(self, since: str | None) -> Observations:
        """All pods that are not forgotten, or those that changed after the cursor."""
        with self._turn:
            self._catch_up()
            now = self._now()
            self._pass_events(now)
            known = self._position(since)
            keys = self._unforgotten() if known is None else self._changed_since(known)
            self._told = self._dropped + len(self._changes)
            pods = [self._pods[key].observe(now) for key in keys]
            return Observations(pods, cursor=f"{self._life}:{self._told}", complete=known is None)

    def forget(self, keys: Sequence[PodKey]) -> None:
        """Tell no more of these pods."""
        with self._turn, self._journal.writing():
            self._catch_up()
            new = [list(_key_fields(key)) for key in keys if key in self._pods and key not in self._forgotten]
            if new:
                self._write({"forget": new})

    def wait(self, timeout_seconds: float) -> bool:
        """Until something was ordered in this process or the next event is due; once for each, observed or not."""
        with self._turn:
            if not self._has_news():
                self._turn.wait(self._seconds_to_next_event(timeout_seconds))
            roused = self._has_news()
            self._roused = self._dropped + len(self._changes)
            return roused

    def logs(self, key: PodKey, *, offset: int, limit: int) -> LogChunk:
        """A text that says what it is."""
        course, now = self._known(key), self._now()
        text = course.log(now).encode()
        begin = min(max(offset, 0), len(text))
        data = text[begin : begin + limit]
        end = begin + len(data)
        return LogChunk(data, begin, end, complete=course.phase(now).is_final and end == len(text))

    def use(self, keys: Sequence[PodKey]) -> Sequence[Use]:  # noqa: ARG002
        """Nothing runs, so nothing is used, and no figures are made up."""
        return []

    def endpoint(self, key: PodKey, port: int) -> tuple[str, int]:
        """Where it would be; nobody answers there."""
        return self._known(key).address, port

    def reach(self, key: PodKey, port: int) -> AbstractAsyncContextManager[Line]:
        """Nothing is there."""
        raise NotHere(f"{key.name} is imagined, and so is its port {port}")

    def run(
        self,
        key: PodKey,
        command: Sequence[str],  # noqa: ARG002
        *,
        in_terminal: bool = False,  # noqa: ARG002
    ) -> AbstractAsyncContextManager[Command]:
        """Nothing is there."""
        raise NotHere(f"{key.name} is imagined")

    def remove(self, job: str, *, tenant: str = "") -> None:  # noqa: ARG002
        """The pods of the job end now and are told of no more; what they would have written can still be read."""
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
        """Forget that the pods of the job ever were."""
        with self._turn, self._journal.writing():
            self._catch_up()
            if job in self._jobs:
                self._write({"remove": job})
            if self._entries > 2 * len(self._pods) + MIN_ENTRIES_TO_REWRITE:
                self._journal.rewrite(self._as_entries())
                self._catch_up()

    def inventory(self, *, fresh: bool = True) -> Inventory:  # noqa: ARG002
        """By the journal and the time."""
        with self._turn:
            self._catch_up()
            now = self._now()
            alive = frozenset(key for key, course in self._pods.items() if not course.phase(now).is_final)
            kept = frozenset(key.job for key in self._unforgotten())
            return Inventory(alive, kept, frozenset(self._jobs))

    def close(self) -> None:
        """It holds nothing."""

    # The journal

    def _reset(self) -> None:
        self._pods: dict[PodKey, Plan] = {}
        self._jobs: dict[str, set[PodKey]] = {}
        self._forgotten: set[PodKey] = set()
        self._events: list[tuple[float, int, PodKey]] = []
        self._order = itertools.count()  # keys have no order, and events at one instant need one
        self._changes: list[PodKey] = []
        self._dropped = 0
        self._told = self._roused = 0
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
                del self._pods[key]
                self._forgotten.discard(key)

    def _set_course(self, course: Plan) -> None:
        key = course.key
        self._pods[key] = course
        self._jobs.setdefault(key.job, set()).add(key)
        self._changes.append(key)
        for at in (course.runs_at, course.ends_at):
            heapq.heappush(self._events, (at, next(self._order), key))

    def _as_entries(self) -> Iterator[Entry]:
        for course in self._pods.values():
            yield {"plan": _to_entry(course)}
        if self._forgotten:
            yield {"forget": [list(_key_fields(key)) for key in self._forgotten]}

    # Changes

    def _now(self) -> float:
        return self._clock().timestamp()

    def _pass_events(self, now: float) -> None:
        while self._events and self._events[0][0] <= now:
            self._changes.append(heapq.heappop(self._events)[2])
        if len(self._changes) > MAX_CHANGES_KEPT:
            self._dropped += len(self._changes)
            self._changes.clear()

    def _position(self, since: str | None) -> int | None:
        """Where in the changes the cursor stands; None where all must be told."""
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
        return self._dropped + len(self._changes) > max(self._told, self._roused)

    def _seconds_to_next_event(self, most: float) -> float:
        if not self._events:
            return most
        return max(0.0, min(most, self._events[0][0] - self._now()))

    def _known(self, key: PodKey) -> Plan:
        with self._turn:
            self._catch_up()
            if key not in self._pods:
                raise UnknownPod(f"There is no pod {key.name} here")
            return self._pods[key]


def _key_fields(key: PodKey) -> tuple[str, str, int, int]:
    return key.job, key.task, key.index, key.attempt


def _to_entry(course: Plan) -> Entry:
    return {**asdict(course), "key": _key_fields(course.key)}


def _from_entry(entry: Entry) -> Plan:
    return Plan(**{**entry, "key": PodKey(*entry["key"])})
