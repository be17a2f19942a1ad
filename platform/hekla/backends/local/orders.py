"""Check a pod order, and write it to the pod's folder, without any secrets of the console.

The environment of a pod is built from scratch; it does not inherit that of the console.
"""

import getpass
import hashlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from hekla.backends.base import EnvironmentSpec, PodOrder, StartRefused
from hekla.backends.local import cgroups, folders, volumes
from hekla.backends.local.pod_folder import EnvironmentOrder, PodFolder, ShimOrder, boot_id
from hekla.backends.local.processes import HOSTS_FILE, MARK

MAX_FILES = 1000
MAX_FILE_BYTES = 16 * 2**20
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_PASSED_TO_BUILDS = (
    "HOME", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE",
    "SSL_CERT_DIR", "UV_CONFIG_FILE", "UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL", "UV_OFFLINE", "UV_FIND_LINKS",
)  # fmt: skip


def check(order: PodOrder) -> None:
    """Raise StartRefused if the order is not possible here."""
    if not order.command or not order.command[0]:
        raise StartRefused("The pod has no command")
    if any("\0" in text for text in (*order.command, *order.env, *order.env.values(), order.working_dir)):
        raise StartRefused("The command, the environment and the working folder may not hold a zero byte")
    if any(not name or "=" in name for name in order.env):
        raise StartRefused("A name in the environment is empty or holds “=”")
    if ".." in PurePosixPath(order.working_dir).parts:
        raise StartRefused("The working folder may not lead upwards (“..”)")
    _check_files({**order.files, **order.secrets})
    volumes.check(order)
    mounted = (path for mount in order.volume_mounts for path in (mount.mount_path, mount.sub_path))
    folders.check((*order.files, *order.secrets, order.working_dir, *mounted))
    for requirement in order.environment.requirements if order.environment else ():
        if "\n" in requirement or requirement.lstrip().startswith("-"):
            raise StartRefused(f"“{requirement[:80]}” is not a requirement; options are not taken here")


def write(
    order: PodOrder, folder: PodFolder, *, final: str, wake: Path, environments: Path, cgroup: str | None
) -> None:
    """Write the order to a new folder that will be renamed to `final`. `cgroup`: the parent control group, if any."""
    work = Path(folder.work)
    os.makedirs(folder.work)
    os.makedirs(folder.tmp)
    for name, content in order.files.items():
        path = work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8", newline="")
    for name, content in order.secrets.items():
        _write_secret(work / name, content)
    volumes.write(order, folder, PodFolder(final))
    if not PurePosixPath(order.working_dir).is_absolute():
        volumes.write_working_dir(order, folder)
    Path(folder.hosts).write_text(_hosts(order.hosts), encoding="utf-8")
    environment = _environment(order.environment, environments)
    made = _order(order, PodFolder(final), environment, wake)
    if cgroup:
        made["cgroup"] = os.path.join(cgroup, mark(made).replace(":", "~"))
    folder.write_order(made)


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


def _order(order: PodOrder, folder: PodFolder, environment: EnvironmentOrder | None, wake: Path) -> ShimOrder:
    key = order.key
    made = ShimOrder(
        key=(key.job, key.task, key.index, key.attempt),
        boot=boot_id(),
        command=list(order.command),
        working_dir=order.working_dir,
        env={},
        address=order.address,
        grace_seconds=order.grace_seconds,
        wake=str(wake),
        environment=environment,
        cgroup="",
        limits=cgroups.limit_files(order.resources.amount("cpu"), order.resources.amount("memory")),
    )
    made["env"] = {
        **_base_env(folder, environment),
        **order.env,
        "HEKLA_POD_ADDRESS": order.address,
        HOSTS_FILE: folder.hosts,
        MARK: mark(made),
    }
    return made


def _base_env(folder: PodFolder, environment: EnvironmentOrder | None) -> dict[str, str]:
    interpreter = os.path.join(environment["folder"], "bin") if environment else os.path.dirname(sys.executable)
    return {
        "PATH": f"{interpreter}:{SYSTEM_PATH}",
        "HOME": folder.work,
        "TMPDIR": folder.tmp,
        "USER": getpass.getuser(),
        "LANG": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",
        **{name: os.environ[name] for name in ("TZ",) if name in os.environ},
    }


def _hosts(hosts: Mapping[str, str]) -> str:
    lines = ["127.0.0.1 localhost", *(f"{address} {name}" for name, address in hosts.items())]
    return "\n".join(lines) + "\n"


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
