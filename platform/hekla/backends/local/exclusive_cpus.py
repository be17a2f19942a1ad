"""CPUs that pods have for themselves, as with the static CPU manager policy of a kubelet.

Below its folder is a file for each pod that has CPUs alone, with their numbers; it is written before the pod's folder,
and deleted once the pod has ended. The file `shared` has the CPUs of all other pods: shims read it (`cpusets`).

Any number of processes may use the same folder: a lock makes them wait for one another.
"""

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from hekla.backends.base import StartDelayed, StartRefused
from hekla.backends.local.cpu_topology import CpuTopology
from hekla.domain.cpu_sets import format_cpus, parse_cpus
from hekla.domain.numa import NumaTopology, TopologyPolicy, pin

STATIC = "static"
_MILLI = 1000


class ExclusiveCpus:
    """Which pod of this machine has which CPUs alone.

    `is_over`: whether the pod with this name has ended, or there is none. `has_news`: whether the shared CPUs may have
    changed since shims were last woken; whoever wakes them resets it.
    """

    def __init__(
        self, folder: Path, topology: CpuTopology, policy: TopologyPolicy, is_over: Callable[[str], bool]
    ) -> None:
        self._holders, self._lock, self.shared = folder / "pods", folder / "lock", folder / "shared"
        self._topology, self._policy, self._is_over = topology, policy, is_over
        self._holders.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.has_news, self._is_written = True, False

    @property
    def whole(self) -> NumaTopology:
        """The cells, all of whose CPUs are free."""
        cells = tuple((len(cell), len(cell)) for cell in self._topology.cells)
        return NumaTopology(str(self._policy), STATIC, cells)

    def topology(self) -> NumaTopology:
        """The cells, with their free CPUs."""
        cells = zip(self._topology.cells, self._free(self._held()), strict=True)
        return NumaTopology(str(self._policy), STATIC, tuple((len(cell), len(free)) for cell, free in cells))

    @contextlib.contextmanager
    def claim(self, pod: str, cpu: float) -> Iterator[str]:
        """While this is open, create the pod: it has the yielded CPUs alone, or shares CPUs if the text is empty.

        `cpu`: its request in millicores; a whole number of CPUs above 0 gives it as many. Without a pod afterwards, the
        CPUs are free again. Raises StartDelayed, StartRefused.
        """
        cpus, rest = divmod(int(cpu), _MILLI)
        if rest or not cpus:
            self.release(lambda _pod: True)
            yield ""
            return
        with self._locked():
            held = self._without_ended()
            chosen = held.get(pod) or self._choose(cpus, self._free(held))
            self._write(self._holders / pod, chosen)
            self._write_shared({**held, pod: chosen})
            yield format_cpus(chosen)

    def release(self, live: Callable[[str], bool]) -> None:
        """Free the CPUs of pods that have ended. `live`: whether a pod is known not to have ended.

        The first call also writes which CPUs are shared: they are those of the process that starts pods.
        """
        if self._is_written and all(live(pod) for pod in os.listdir(self._holders)):
            return
        with self._locked():
            self._write_shared(self._without_ended())

    def _choose(self, count: int, free: list[frozenset[int]]) -> frozenset[int]:
        """Of the fewest cells, as a kubelet does. Raises StartDelayed, StartRefused."""
        whole = [len(cell) for cell in self._topology.cells]
        parts, least = pin([len(cell) for cell in free], count), _width(pin(whole, count))
        if not least or (self._policy is TopologyPolicy.SINGLE_NUMA_NODE and least > 1):
            where = "for one pod" if not least else "in one NUMA cell"
            raise StartRefused(f"The pod requests {count} CPUs for itself, and this machine has fewer {where}.")
        if not _width(parts):
            raise StartDelayed(f"This machine has no {count} free CPUs that the pod can have for itself.")
        is_strict = self._policy in (TopologyPolicy.SINGLE_NUMA_NODE, TopologyPolicy.RESTRICTED)
        if is_strict and _width(parts) > least:
            raise StartDelayed(f"{count} CPUs are free in more NUMA cells than the policy {self._policy} allows.")
        picked = (self._topology.pick(cell, part) for cell, part in zip(free, parts, strict=True))
        return frozenset(cpu for cpus in picked for cpu in cpus)

    def _free(self, held: Mapping[str, frozenset[int]]) -> list[frozenset[int]]:
        """The free CPUs of each cell."""
        return [cell.difference(*held.values()) for cell in self._topology.cells]

    def _held(self) -> dict[str, frozenset[int]]:
        """The CPUs of each pod that has some alone."""
        found = {}
        for pod in os.listdir(self._holders):
            with contextlib.suppress(FileNotFoundError):
                found[pod] = _read(self._holders / pod)
        return found

    def _without_ended(self) -> dict[str, frozenset[int]]:
        """Like `_held`, after the files of ended pods are deleted. Under the lock, a file without a pod is one."""
        held = self._held()
        for pod in [pod for pod in held if self._is_over(pod)]:
            (self._holders / pod).unlink(missing_ok=True)
            del held[pod]
        return held

    def _write_shared(self, held: Mapping[str, frozenset[int]]) -> None:
        topology = self._topology
        if self._write(self.shared, topology.reserved.union(*self._free(held))):
            self.has_news = True
        self._is_written = True

    def _write(self, path: Path, cpus: frozenset[int]) -> bool:
        """Replace the file as a whole, if it differs. Returns whether it did."""
        text = format_cpus(cpus)
        with contextlib.suppress(FileNotFoundError):
            if path.read_text() == text:
                return False
        draft = self._lock.with_name("draft")
        draft.write_text(text)
        draft.replace(path)
        return True

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        with open(self._lock, "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _read(path: Path) -> frozenset[int]:
    """The CPUs in a file; none in one that somebody has damaged."""
    try:
        return parse_cpus(path.read_text())
    except ValueError:
        return frozenset()


def _width(parts: tuple[int, ...]) -> int:
    """From how many cells there are CPUs."""
    return sum(1 for part in parts if part)
