"""The backend `local`: pods as process groups of this machine, each in a sandbox.

On disk, below `home/local/<cluster>/`:

    pods/<job>/<pod>/     a folder for each pod (`pod_folder`)
    active/<entry>        an empty file for each pod whose end is not recorded yet, so the cost of `observe` does not
                          grow with the number of past pods
    tenants/<tenant>      the user id of each tenant that has started a pod
    wake                  a named pipe to which shims write after a change
"""

import asyncio
import contextlib
import hashlib
import os
import re
import select
import shutil
import signal
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from hekla.backends.base import (
    Backend,
    BackendError,
    Inventory,
    NodeInfo,
    NodeMetrics,
    Observation,
    Observations,
    PodKey,
    PodMetrics,
    PodOrder,
    StartRefused,
    UnknownPod,
)
from hekla.backends.kind import BackendContext
from hekla.backends.local import (
    addresses,
    cgroups,
    cpu_topology,
    cpusets,
    frozen_folders,
    inventory,
    isolation,
    machine,
    names,
    orders,
    pod_metrics,
    pod_sandbox,
    recovery,
    removal,
    sockets,
    tenants,
)
from hekla.backends.local.config import LocalConfig
from hekla.backends.local.containers.exec import ContainerExec
from hekla.backends.local.containers.order import ContainerOrder
from hekla.backends.local.containers.runtime import Runtime, default_socket
from hekla.backends.local.cpusets import CpuOrder
from hekla.backends.local.exclusive_cpus import STATIC, ExclusiveCpus
from hekla.backends.local.files import LocalFiles
from hekla.backends.local.log_times import read_times
from hekla.backends.local.node_metrics import MachineMeter
from hekla.backends.local.pod_folder import (
    FINAL,
    PodFolder,
    ShimStatus,
    StopRequest,
    damaged_status,
    open_regular,
    signal_holder,
)
from hekla.backends.local.process_exec import ProcessExec
from hekla.backends.local.uploads import LocalUploads
from hekla.backends.log_chunk import LogChunk
from hekla.backends.sequential import one_by_one
from hekla.backends.streams import Stream
from hekla.domain.addresses import Replica
from hekla.domain.cpu_sets import parse_cpus
from hekla.domain.phases import PodPhase

REMOVE_PATIENCE_SECONDS = 10.0
NO_GRACE_CAP = 86_400.0
_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


class LocalBackend(Backend):
    """This machine as a cluster. Any number of processes may open the same one."""

    def __init__(self, config: LocalConfig, context: BackendContext) -> None:
        self._config = config
        self._clock = context.clock
        self._meter = MachineMeter(config)
        home = context.home.resolve()
        self._root = home / "local" / context.cluster
        self._pods, self._active, self._wake = (self._root / name for name in ("pods", "active", "wake"))
        self._pipe: int | None = None
        self._make_folders()
        name = _group_name(self._root)
        groups = cgroups.create_parents(name)
        shared = pod_sandbox.shared_paths(config.shared_folders, config.writable_folders)
        runtime = None
        if config.runtime == "containers":
            socket = config.socket or default_socket()
            runtime = Runtime(socket, config.image, home=home, cluster=self._root)
        self._exclusive = self._exclusive_cpus()
        parent = cpusets.create_parent(name, groups) if self._exclusive and not runtime else None
        self._machine = orders.Machine(home, self._wake, groups, shared, runtime, cpu_groups=parent)

    @property
    def runner(self) -> "LocalBackend":
        return self

    @property
    def exec(self) -> ContainerExec | ProcessExec:
        return ContainerExec(self._container_of) if self._machine.runtime else ProcessExec(self._existing_folder)

    @property
    def port_forwarding(self) -> "LocalBackend":
        return self

    @property
    def files(self) -> LocalFiles:
        return LocalFiles(frozen_folders.with_its_files(self._existing_folder))

    @property
    def uploads(self) -> LocalUploads:
        return LocalUploads(frozen_folders.with_its_files(self._existing_folder))

    @property
    def frozen(self) -> frozen_folders.LocalFrozenFolders:
        return frozen_folders.LocalFrozenFolders(self._existing_folder)

    @property
    def metrics(self) -> "LocalBackend | None":
        return self if pod_metrics.can_measure() else None

    @property
    def node_meter(self) -> "LocalBackend":
        return self

    def measure_nodes(self) -> Sequence[NodeMetrics]:
        """This machine."""
        return self._meter.measure(self._clock())

    def nodes(self) -> Sequence[NodeInfo]:
        """This machine. Its message says how it keeps pods apart, and which limits it enforces."""
        try:
            cpus, message = self._usable_cpus(), self._isolation()
        except BackendError as error:
            return [replace(machine.node(self._root, self._config), ready=False, message=str(error))]
        node = machine.node(self._root, self._config, cpus.topology() if cpus else None)
        return [node if node.message else replace(node, message=message)]

    def _isolation(self) -> str:
        runtime, sentences = self._machine.runtime, list[str]()
        if self._config.cpu_policy == STATIC:
            is_enforced = runtime is not None or self._machine.cpu_groups is not None
            sentences = isolation.cpu_sentences(is_possible=bool(self._usable_cpus()), is_enforced=is_enforced)
        if runtime:
            engine = runtime.info()
            return " ".join([*sentences, isolation.of_containers(f"{engine.name} {engine.version}", engine.limits)])
        return " ".join([*sentences, isolation.description(cgroups.limited(self._machine.groups))])

    def address(self, replica: Replica) -> str:
        """A loopback address that only its slot has."""
        return addresses.address_of(replica.slot)

    def _start(self, order: PodOrder) -> None:
        """Create the pod's folder and launch a shim, unless done already. Raises BackendError, StartRefused."""
        here = replace(self._machine, cards=machine.cards_of(self._config))  # GPUs fail, and come back
        orders.check(order, here)
        try:
            folder = self._folder(order.key)
        except UnknownPod as error:
            raise StartRefused(str(error)) from error
        if not os.path.isdir(folder.path):
            self._create_folder(order, folder, here)
        status = folder.status()
        if status and status["phase"] in FINAL:
            return
        self._mark_active(order.key)
        recovery.settle_status(folder, launch_seconds=0.0)

    def start_many(
        self, orders: Iterable[PodOrder], *, heartbeat: Callable[[], None]
    ) -> Iterator[tuple[PodOrder, BackendError | None]]:
        """Sequentially."""
        try:
            yield from one_by_one(self._start, orders, heartbeat)
        finally:
            self._wake_shims()

    def _stop(self, request: tuple[PodKey, str]) -> None:
        """Request the shim to stop the pod, with its grace period. A pod that was not started yet never runs."""
        key, reason = request
        try:
            folder = self._folder(key)
        except UnknownPod:
            return
        if not os.path.isdir(folder.path) and self._create_tombstone(key, folder, reason):
            return
        self._request_stop(folder, reason, NO_GRACE_CAP)

    def stop_many(
        self, requests: Iterable[tuple[PodKey, str]], *, heartbeat: Callable[[], None]
    ) -> Iterator[tuple[tuple[PodKey, str], BackendError | None]]:
        """Sequentially."""
        return one_by_one(self._stop, requests, heartbeat)

    def observe(self, since: str | None) -> Observations:  # noqa: ARG002  (always reports all)
        """Every pod whose end is not recorded."""
        cursor = self._clock().isoformat()
        pods = list(self._observe_all())
        self._release_cpus(pods)
        return Observations(pods=pods, cursor=cursor, complete=True)

    def forget(self, keys: Sequence[PodKey]) -> None:
        """Stop reporting these pods."""
        for key in keys:
            (self._active / names.entry_of(key)).unlink(missing_ok=True)

    def wait(self, timeout_seconds: float) -> bool:
        """Block until a shim writes to the pipe. The first call opens it, and returns True for missed changes."""
        if self._pipe is None:
            self._pipe = os.open(self._wake, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
            return True
        ready, _, _ = select.select([self._pipe], [], [], timeout_seconds)
        if not ready:
            return False
        with contextlib.suppress(BlockingIOError):
            os.read(self._pipe, 65536)
        return True

    def logs(self, key: PodKey, *, offset: int, limit: int) -> LogChunk:
        """The pod's output, unchanged."""
        folder = self._existing_folder(key)
        status = folder.status()
        try:
            with open_regular(folder.log) as log:
                size = log.seek(0, os.SEEK_END)
                log.seek(min(max(offset, 0), size))
                begin, data = log.tell(), log.read(limit)
        except OSError:
            size, begin, data = 0, 0, b""
        end = begin + len(data)
        ended = status is not None and status["phase"] in FINAL and end >= size
        return LogChunk(data, begin, end, complete=ended, times=read_times(folder.log_times, begin, end))

    def measure(self, keys: Sequence[PodKey]) -> Sequence[PodMetrics]:
        """From the pods' control groups, else from their processes, in one pass for all pods."""
        found = {key: folder for key in keys if (folder := self._running_folder(key))}
        return pod_metrics.measure_pods(found, at=self._clock()) if found else []

    @contextlib.asynccontextmanager
    async def connect(self, key: PodKey, port: int) -> AsyncIterator[Stream]:
        """Connect to the pod's own address; the server must listen on it."""
        host = await asyncio.to_thread(self._address_of, key)
        async with sockets.open_socket(host, port) as stream:
            yield stream

    def remove(self, job: str, *, tenant: str = "") -> None:  # noqa: ARG002
        """Kill the job's running pods, and delete their files except the logs.

        Raises BackendError if a pod takes more than ten seconds to end.
        """
        if not _SAFE.fullmatch(job):
            return
        folders = [PodFolder(str(path)) for path in names.list_folders(self._pods / job)]
        for folder in folders:
            self._request_stop(folder, "Its job is removed", grace_seconds=0.0)
        self._await_ends(folders)
        for entry in self._active.glob(f"{job}:*"):
            entry.unlink(missing_ok=True)
        for folder in folders:
            removal.remove_all_but_log(folder)
        removal.remove_leftovers(self._pods / job)
        if self._machine.runtime:
            self._machine.runtime.remove_leftovers(job)

    def remove_logs(self, job: str, *, tenant: str = "") -> None:  # noqa: ARG002
        """Delete the job's folder. Raises BackendError like `remove`."""
        self.remove(job)
        if _SAFE.fullmatch(job):
            removal.delete(self._pods / job)

    def inventory(self, *, fresh: bool = True) -> Inventory:  # noqa: ARG002
        """From the folders, the locks of the shims, the containers and, if the system shows them, the processes."""
        return inventory.list_inventory(self._pods, self._machine.runtime)

    def close(self) -> None:
        """Close the pipe."""
        if self._pipe is not None:
            os.close(self._pipe)
            self._pipe = None

    # Folders

    def _make_folders(self) -> None:
        for folder in (self._pods, self._active):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.mkfifo(self._wake, 0o600)

    def _folder(self, key: PodKey) -> PodFolder:
        if not (_SAFE.fullmatch(key.job) and _SAFE.fullmatch(key.task)):
            raise UnknownPod(f"“{key.name[:80]}” cannot be the name of a pod")
        folder = PodFolder(str(self._pods / key.job / key.name))
        if os.path.islink(folder.path) or os.path.islink(os.path.dirname(folder.path)):
            raise UnknownPod(f"A link is in the place of the pod {key.name}")
        return folder

    def _existing_folder(self, key: PodKey) -> PodFolder:
        folder = self._folder(key)
        if not os.path.isdir(folder.path):
            raise UnknownPod(f"There is no pod {key.name} here")
        return folder

    def _address_of(self, key: PodKey) -> str:
        order = self._existing_folder(key).order()
        if order is None:
            raise UnknownPod(f"{key.name} was never started")
        return order["address"]

    def _container_of(self, key: PodKey) -> ContainerOrder:
        """The container of a pod. Raises UnknownPod."""
        order = self._existing_folder(key).order()
        if order is None or order["container"] is None:
            raise UnknownPod(f"{key.name} has no container")
        return order["container"]

    def _running_folder(self, key: PodKey) -> PodFolder | None:
        with contextlib.suppress(UnknownPod, ValueError):
            folder = self._existing_folder(key)
            status = folder.status()
            return folder if status and status["phase"] == PodPhase.RUNNING and folder.order() else None
        return None

    def _create_folder(self, order: PodOrder, folder: PodFolder, here: orders.Machine) -> None:
        contained, accepted = self._machine.runtime is not None, self._config.accept_weak_isolation
        source = frozen_folders.source_of(order, self._existing_folder, in_containers=contained)
        is_apart = contained or isolation.is_complete()
        uid = tenants.admit(self._root / "tenants", order.key.tenant, is_apart=is_apart, accepts_several=accepted)
        with self._claimed_cpus(order) as cpus, self._draft(folder) as draft:
            orders.write(order, draft, final=folder.path, uid=uid, machine=here, cpus=cpus, source=source)

    def _create_tombstone(self, key: PodKey, folder: PodFolder, reason: str) -> bool:
        """Create a stopped pod in place of one that was never started. False if a start came first."""
        with self._draft(folder) as draft:
            recovery.write_final_status(draft, "failed", "Stopped", reason)
        self._mark_active(key)
        return folder.order() is None

    @contextlib.contextmanager
    def _draft(self, folder: PodFolder) -> Iterator[PodFolder]:
        """A new folder, renamed to `folder` at the end, unless that exists then. Raises BackendError."""
        job = os.path.dirname(folder.path)
        draft = os.path.join(job, f".draft-{uuid.uuid4().hex}")
        try:
            os.makedirs(draft, mode=0o700)
            yield PodFolder(draft)
            with contextlib.suppress(FileExistsError):
                _rename_new(draft, folder.path)
        except OSError as error:
            raise BackendError(f"The pod's folder could not be written: {error}") from error
        finally:
            shutil.rmtree(draft, ignore_errors=True)

    # CPUs of pods

    def _exclusive_cpus(self) -> ExclusiveCpus | None:
        if self._config.cpu_policy != STATIC:
            return None
        topology = cpu_topology.read_topology(parse_cpus(self._config.reserved_cpus))
        if not topology.cells:
            return None
        return ExclusiveCpus(self._root / "cpus", topology, self._config.topology_policy, self._is_over)

    def _usable_cpus(self) -> ExclusiveCpus | None:
        """None if no pod can have CPUs for itself. Raises BackendError if the container engine does not answer."""
        runtime = self._machine.runtime
        is_usable = not (self._exclusive and runtime) or "cpuset" in runtime.info().limits
        return self._exclusive if is_usable else None

    @contextlib.contextmanager
    def _claimed_cpus(self, order: PodOrder) -> Iterator[CpuOrder | None]:
        """The CPUs of a pod that is created while this is open. Raises BackendError, StartDelayed, StartRefused."""
        if not (cpus := self._usable_cpus()):
            yield None
            return
        try:
            with cpus.claim(names.entry_of(order.key), order.resources.amount("cpu")) as own:
                yield CpuOrder(own=own, pool=str(cpus.shared), group="")
        except OSError as error:
            raise BackendError(f"The CPUs of the pod could not be recorded: {error}") from error

    def _is_over(self, entry: str) -> bool:
        """Whether the pod of this name has ended, or there is none."""
        try:
            folder = self._existing_folder(names.key_of(entry))
        except (ValueError, UnknownPod):
            return True
        status = folder.status()
        return status is not None and status["phase"] in FINAL

    def _release_cpus(self, pods: Sequence[Observation]) -> None:
        """Free the CPUs of pods that are not among these, or have ended."""
        if self._exclusive is None:
            return
        live = {names.entry_of(pod.key) for pod in pods if not pod.phase.is_final}
        with contextlib.suppress(OSError):  # the next observation repeats it
            self._exclusive.release(live.__contains__)
        self._wake_shims()

    def _wake_shims(self) -> None:
        """Let shims read which CPUs all pods share, if that has changed."""
        if self._exclusive is None or not self._exclusive.has_news:
            return
        self._exclusive.has_news = False
        for entry in os.listdir(self._active):
            with contextlib.suppress(ValueError, UnknownPod, OSError):
                folder = self._folder(names.key_of(entry))
                if (shim := folder.holder()) is not None:
                    signal_holder(folder, shim, signal.SIGUSR1)

    # Pods

    def _mark_active(self, key: PodKey) -> None:
        (self._active / names.entry_of(key)).touch(mode=0o600)

    def _observe_all(self) -> Iterator[Observation]:
        for name in os.listdir(self._active):
            try:
                key = names.key_of(name)
                folder = self._folder(key)
            except (ValueError, UnknownPod):  # not of our making
                continue
            try:
                status = recovery.settle_status(folder)
            except BackendError as error:
                status = recovery.preparing_status(folder)
                status["message"] = str(error)
            except (OSError, ValueError) as error:
                status = damaged_status(str(error))
            if status is not None:
                yield _observation(key, status)
            elif not os.path.isdir(folder.path):
                (self._active / name).unlink(missing_ok=True)

    def _request_stop(self, folder: PodFolder, reason: str, grace_seconds: float) -> None:
        status = folder.status()
        if status and status["phase"] in FINAL:
            return
        earlier = folder.stop_request()
        if earlier is None or grace_seconds < earlier["grace_seconds"]:
            request = StopRequest(reason=reason, at=time.time(), grace_seconds=grace_seconds)
            folder.request_stop(request)
        with contextlib.suppress(ValueError):  # `observe` reports a damaged order
            recovery.settle_status(folder)

    def _await_ends(self, folders: Sequence[PodFolder]) -> None:
        give_up_at = time.monotonic() + REMOVE_PATIENCE_SECONDS
        for folder in folders:
            while folder.holder() is not None:
                if time.monotonic() > give_up_at:
                    raise BackendError("A pod of the job has not ended yet")
                time.sleep(0.02)


def _group_name(root: Path) -> str:
    """The name of this cluster's control group, unique on the machine."""
    return f"hekla-{root.name}-{hashlib.sha256(str(root).encode()).hexdigest()[:12]}"


def _observation(key: PodKey, status: ShimStatus) -> Observation:
    return Observation(
        key=key,
        phase=PodPhase(status["phase"]),
        at=datetime.fromtimestamp(status["at"], tz=UTC),
        reason=status.get("reason", ""),
        message=status.get("message", ""),
        exit_code=status.get("exit_code"),
        cpus=status.get("cpus", ""),
    )


def _rename_new(draft: str, final: str) -> None:
    """Rename `draft` to `final`. Raises FileExistsError if `final` exists; a folder in use is never empty."""
    try:
        os.rename(draft, final)
    except OSError as error:
        if os.path.isdir(final):
            raise FileExistsError(final) from error
        raise
