"""Check a pod order, and write it to the pod's folder, without any secrets of the console.

The environment of a pod is built from scratch; it does not inherit that of the console.
"""

import contextlib
import hashlib
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from hekla.backends.base import EnvironmentSpec, PodOrder, StartRefused
from hekla.backends.local import cgroups, cpusets, folders, gpus, names, pod_sandbox, volumes
from hekla.backends.local.containers import order as container_orders
from hekla.backends.local.containers.runtime import Runtime
from hekla.backends.local.cpusets import CpuOrder
from hekla.backends.local.pod_folder import RUN, EnvironmentOrder, PodFolder, ShimOrder, boot_id
from hekla.backends.local.pod_sandbox import SharedPath
from hekla.backends.local.processes import HOSTS_FILE, MARK
from hekla.domain.cards import MEMORY, NUMBER, NVIDIA, NodeCard
from hekla.domain.resources import Resources
from hekla.domain.runtime_settings import RuntimeSettings
from hekla.domain.volumes import WORKING_DIR

MAX_FILES = 1000
MAX_FILE_BYTES = 16 * 2**20
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_PASSED_TO_BUILDS = (
    "HOME", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE",
    "SSL_CERT_DIR", "UV_CONFIG_FILE", "UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL", "UV_OFFLINE", "UV_FIND_LINKS",
)  # fmt: skip


def check(order: PodOrder, machine: "Machine") -> None:
    """Raise StartRefused if the order is not possible here."""
    if machine.runtime:
        container_orders.check(order)
    elif not order.command or not order.command[0]:
        raise StartRefused("The pod has no command, and a process of this machine has no image with one")
    texts = (*order.command, *order.args, *order.env, *order.env.values(), order.working_dir)
    if any("\0" in text for text in texts):
        raise StartRefused("The command, the environment and the working folder may not hold a zero byte")
    if any(not name or "=" in name for name in order.env):
        raise StartRefused("A name in the environment is empty or holds “=”")
    if ".." in PurePosixPath(order.working_dir).parts:
        raise StartRefused("The working folder may not lead upwards (“..”)")
    _check_files({**order.files, **order.secrets})
    _check_settings(order.settings)
    _check_cards(order.resources, machine.cards)
    volumes.check(order, in_containers=machine.runtime is not None)
    mounted = (path for mount in order.volume_mounts for path in (mount.mount_path, mount.sub_path))
    folders.check((*order.files, *order.secrets, order.working_dir, *mounted))
    for requirement in order.environment.requirements if order.environment else ():
        if "\n" in requirement or requirement.lstrip().startswith("-"):
            raise StartRefused(f"“{requirement[:80]}” is not a requirement; options are not taken here")


@dataclass(frozen=True, slots=True)
class Machine:
    """What is the same for all pods of a cluster.

    `home`: the data of the console. `wake`: the pipe to which shims write. `groups`: the parents of control groups.
    `shared`: folders that all pods may use, with their modes. `runtime`: of pods in containers; None: processes.
    `cards`: those of the node. `cpu_groups`: the parent of groups that keep pods on CPUs.
    """

    home: Path
    wake: Path
    groups: cgroups.Parents
    shared: Sequence[SharedPath]
    runtime: Runtime | None = None
    cards: Sequence[NodeCard] = ()
    cpu_groups: cpusets.Parent | None = None


def write(
    order: PodOrder,
    folder: PodFolder,
    *,
    final: str,
    uid: int,
    machine: Machine,
    cpus: CpuOrder | None = None,
    source: PodFolder | None = None,
) -> None:
    """Write the order to a new folder that will be renamed to `final`. `uid`: of the pod; 0 for the console's own.

    `cpus`: None if all pods share all CPUs. Its group is filled in. `source`: the ended pod whose files it gets. That
    pod may have put anything into them, so nothing is written there.
    """
    os.makedirs(folder.tmp)
    os.makedirs(folder.root)
    lasting = PodFolder(final).with_files_of(source) if source else PodFolder(final)
    if source is None:
        _write_files(order, folder, lasting, uid)
    folders.create(Path(folder.run).parent, PurePosixPath(RUN), "The folder of the job", uid=uid)
    Path(folder.hosts).write_text(_hosts(order.hosts), encoding="utf-8")
    if uid and machine.runtime:
        pod_sandbox.give_folders(folder, uid)
    elif uid:
        pod_sandbox.write_users(folder, uid, pod_sandbox.home_of(lasting))
    if order.image and not machine.runtime:
        _note(folder.log, f"Pods of this cluster are processes, so the image {order.image} is not used.")
    made = _order(order, lasting, uid, machine)
    if source and order.frozen:
        made["frozen"] = names.entry_of(order.frozen)
    if cpus:
        made["cpus"] = cpus if machine.runtime else _with_cpu_group(cpus, made, machine.cpu_groups)
    folder.write_order(made)


def _write_files(order: PodOrder, folder: PodFolder, lasting: PodFolder, uid: int) -> None:
    """Write the working folder and the volumes. `lasting`: where they will be."""
    work = Path(folder.work)
    os.makedirs(folder.work)
    for name, content in order.files.items():
        path = work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8", newline="")
    for name, content in order.secrets.items():
        _write_secret(work / name, content)
    volumes.write(order, folder, lasting, uid=uid)
    if not PurePosixPath(order.working_dir).is_absolute():
        volumes.write_working_dir(order, folder, uid=uid)


def _with_cpu_group(cpus: CpuOrder, made: ShimOrder, parent: cpusets.Parent | None) -> CpuOrder:
    """The order with the group that keeps the pod on its CPUs, which the shim then creates and deletes."""
    if parent is None:
        return cpus
    group = os.path.join(parent.path, _group_name(made))
    made["groups"][group] = {**made["groups"].get(group, {}), **parent.files}
    return {**cpus, "group": group}


def _group_name(made: ShimOrder) -> str:
    return mark(made).replace(":", "~")


def _note(log: str, line: str) -> None:
    """Begin the pod's log with a line of Hekla's own."""
    with open(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(f"[hekla] {line}\n")


def _write_secret(path: Path, content: str) -> None:
    """Write a file with access for its owner only, in a folder with access for its owner only: ssh requires both."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_text(content, encoding="utf-8", newline="")


def mark(order: ShimOrder) -> str:
    """The value of `HEKLA_POD` in every process of the pod."""
    job, task, index, attempt = order["key"]
    return f"{job}:{task}-{index}-{attempt}"


def _check_files(files: Mapping[str, str]) -> None:
    if len(files) > MAX_FILES or sum(len(content) for content in files.values()) > MAX_FILE_BYTES:
        raise StartRefused(f"A pod may bring {MAX_FILES} files with {MAX_FILE_BYTES // 2**20} MiB in all")
    for name in files:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or not path.parts or "\0" in name:
            raise StartRefused(f"“{name[:80]}” is not a file below the working folder")


def _check_settings(settings: RuntimeSettings) -> None:
    if settings.runtime_class:
        raise StartRefused(f"The runtime class “{settings.runtime_class}” is one of a Kubernetes cluster.")
    if settings.pull_secrets:
        raise StartRefused(f"The pull secret “{settings.pull_secrets[0]}” is one of a Kubernetes cluster.")
    if settings.resource_claims:
        raise StartRefused(f"The claim “{settings.resource_claims[0].name}” names objects of a Kubernetes cluster.")
    if names := settings.security_context.names():
        raise StartRefused(f"This machine chooses the users of its pods, so they cannot have {' or '.join(names)}.")
    for port in settings.host_ports:
        if port.container_port != port.host_port:
            raise StartRefused(
                f"Pods of this machine use its network, so port {port.container_port} of a pod cannot be port "
                f"{port.host_port} of the machine."
            )


def _check_cards(request: Resources, cards: Sequence[NodeCard]) -> None:
    """The scheduler counts whole shared cards apart from parts of them, so it would give a card in use as a whole."""
    shared = [card.memory_mib for card in cards if card.resource == NUMBER]
    if shared and request.amount(NUMBER):
        raise StartRefused(
            "Jobs share the GPUs of this machine, so they request memory of one: a whole one is "
            f"{MEMORY}: {max(shared)}, not {NUMBER}."
        )


def _order(order: PodOrder, folder: PodFolder, uid: int, machine: Machine) -> ShimOrder:
    key, environment = order.key, _environment(order.environment, machine.home / "environments")
    built = environment["folder"] if environment else None
    made = ShimOrder(
        key=(key.job, key.task, key.index, key.attempt),
        boot=boot_id(),
        command=[*order.command, *order.args],
        working_dir=os.path.join(pod_sandbox.home_of(folder), order.working_dir),
        env={},
        address=order.address,
        grace_seconds=order.grace_seconds,
        wake=str(machine.wake),
        environment=environment,
        groups={},
        sandbox=None,
        container=None,
        gpus=[card.id for card in order.cards if card.resource in (NUMBER, NVIDIA) and card.id and not card.part_mib],
    )
    if machine.runtime:
        user = pod_sandbox.user_name(uid)
        base = {"HOME": str(WORKING_DIR), "USER": user, **gpus.part_variables(order.cards)}
        env = {**base, **order.env, **_own_env(made, folder, order, machine)}
        made["working_dir"], made["environment"] = "/", None
        made["container"] = container_orders.container_of(
            order, folder, env, uid=uid, runtime=machine.runtime, shared=machine.shared
        )
        return made
    made["sandbox"] = pod_sandbox.sandbox_of(
        folder,
        uid=uid,
        home=machine.home,
        environment=built,
        shared=machine.shared,
        hidden_devices=gpus.hidden_devices(machine.cards, order.cards),
    )
    cpu, memory = order.resources.amount("cpu"), order.resources.amount("memory")
    made["groups"] = cgroups.groups_of(machine.groups, _group_name(made), cpu, memory)
    made["env"] = {
        **_base_env(folder, environment, pod_sandbox.user_name(uid)),
        **gpus.part_variables(order.cards),
        **order.env,
        **_own_env(made, folder, order, machine),
    }
    return made


def _own_env(made: ShimOrder, folder: PodFolder, order: PodOrder, machine: Machine) -> dict[str, str]:
    """Variables by which the pod finds itself, its peers and its cards, and the console finds its processes."""
    found = gpus.variables(machine.cards, order.cards, in_container=machine.runtime is not None)
    return {**found, "HEKLA_POD_ADDRESS": made["address"], HOSTS_FILE: folder.hosts, MARK: mark(made)}


def _base_env(folder: PodFolder, environment: EnvironmentOrder | None, user: str) -> dict[str, str]:
    interpreter = os.path.join(environment["folder"], "bin") if environment else os.path.dirname(sys.executable)
    return {
        "PATH": f"{interpreter}:{SYSTEM_PATH}",
        "HOME": pod_sandbox.home_of(folder),
        "TMPDIR": folder.tmp,
        "USER": user,
        "LANG": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",
        **{name: os.environ[name] for name in ("TZ",) if name in os.environ},
    }


def _hosts(hosts: Mapping[str, str]) -> str:
    """The machine's own names, and those of the job's other pods."""
    with contextlib.suppress(OSError):
        return Path("/etc/hosts").read_text(encoding="utf-8").rstrip() + "\n" + _lines(hosts)
    return "127.0.0.1 localhost\n" + _lines(hosts)


def _lines(hosts: Mapping[str, str]) -> str:
    return "".join(f"{address} {name}\n" for name, address in hosts.items())


def _environment(environment: EnvironmentSpec | None, environments: Path) -> EnvironmentOrder | None:
    if environment is None or not environment.requirements:
        return None
    requirements = sorted(set(environment.requirements))
    digest = hashlib.sha256("\n".join([sys.version, *requirements]).encode()).hexdigest()[:24]
    beside = os.path.join(os.path.dirname(sys.executable), "uv")
    return EnvironmentOrder(
        name=environment.name,
        folder=str(environments / digest),
        requirements=requirements,
        python=sys.executable,
        uv=[beside] if os.access(beside, os.X_OK) else [sys.executable, "-m", "uv"],
        env={
            "PATH": SYSTEM_PATH,
            "LANG": "C.UTF-8",
            "UV_CACHE_DIR": str(environments / "cache"),
            **{name: os.environ[name] for name in _PASSED_TO_BUILDS if name in os.environ},
        },
    )
