"""`ssh`: the pods of a job share one key pair, and reach one another by name.

Volcano creates a Secret and mounts it in root's `.ssh`. Here the pair is derived from `PodContext.secret` of the job,
so only the pods have it: in `.ssh` of their working folder. Pods with their own root file system also have it in the
folder of `--ssh-key-file-path`, as in Volcano. No sshd runs unless the job starts one.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from hekla.domain.frameworks.base import Framework, Option, Options, PodContext, PodSettings, fixed_at_start
from hekla.domain.translation import gettext_noop, translate
from hekla.lib.sshkeys import KeyPair, key_pair

if TYPE_CHECKING:
    from hekla.domain.task_spec import TaskSpec

FOLDER = ".ssh"
KEY = "id_ed25519"
ROOTS = "/root/.ssh"
_FOLDER = re.compile(r"(/[A-Za-z0-9._-]+)+")
_FOR_ALL = f"""\
Host *
  StrictHostKeyChecking no
  UserKnownHostsFile /dev/null
  IdentitiesOnly yes
  IdentityFile ${{HOME}}/{FOLDER}/{KEY}
"""
_PATH = "ssh-key-file-path"
_OWN_KEY = gettext_noop("everyone who can see the job can read a key in it. Without it each job gets its own key pair.")


def _settings(context: PodContext, options: Options) -> PodSettings:
    pair = _pair(context.secret, context.spec.name) if context.secret else KeyPair("", "")
    files = {
        KEY: pair.private,
        f"{KEY}.pub": pair.public,
        "authorized_keys": pair.public,
        "config": _config(context, options),
    }
    return PodSettings(
        secrets={f"{FOLDER}/{name}": text for name, text in files.items()}, mounts={str(options[_PATH]): FOLDER}
    )


@lru_cache(maxsize=128)
def _pair(secret: bytes, job: str) -> KeyPair:
    return key_pair(secret, job)


def _config(context: PodContext, options: Options) -> str:
    """For each pod, its names (as in `svc`), its address and its port."""
    job = context.spec.name
    hosts = (
        f"Host {job}-{task}-{index} {job}-{task}-{index}.{job}\n  HostName {address}\n  Port {options['ssh-port']}\n"
        for (task, index), address in context.addresses.items()
    )
    return "".join((*hosts, _FOR_ALL, f"  IdentityFile {options[_PATH]}/{KEY}\n"))


def _problems(_tasks: Sequence["TaskSpec"], options: Options) -> list[str]:
    own = [f"--{name}: {translate(_OWN_KEY)}" for name in ("ssh-private-key", "ssh-public-key") if options[name]]
    if _is_folder(str(options[_PATH])):
        return own
    return [
        *own,
        translate("--{name} must be the absolute path of a folder, for example {given}.", name=_PATH, given=ROOTS),
    ]


def _is_folder(path: str) -> bool:
    """Whether it is an absolute path of plain characters, since ssh splits the lines of its configuration."""
    return bool(_FOLDER.fullmatch(path)) and ".." not in PurePosixPath(path).parts


def _remarks(_tasks: Sequence["TaskSpec"], options: Options) -> list[str]:
    return [
        translate(
            "pods get the job's keys in {folder} and can run: ssh -F $HOME/{folder}/config NAME. The job must "
            "start its own sshd on port {port}; on clusters of the kind local, at HEKLA_POD_ADDRESS.",
            folder=FOLDER,
            port=options["ssh-port"],
        )
    ]


SSH = Framework(
    "ssh",
    "Gives the pods of a job one pair of keys and a configuration for ssh.",
    _settings,
    options=(
        Option(_PATH, ROOTS),
        Option("ssh-private-key", ""),
        Option("ssh-public-key", ""),
        Option("ssh-port", 22),
    ),
    problems=_problems,
    remarks=_remarks,
    scaling=fixed_at_start(gettext_noop("the list of hosts in .ssh/config")),
)
