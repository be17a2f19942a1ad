"""Code from a git address: each pod clones it before its command, which then runs in the folder `code`.

The console fetches nothing, so an address can reach only what a pod of the tenant can reach. A clone is bounded: https
only, the newest commit only, ten minutes, and 1 GiB for a file, so also for the pack of the repository.
"""

import re
from collections.abc import Sequence

from django import forms
from django.utils.translation import gettext_lazy

from hekla.domain.jobspec import JobSpec

_SCRIPT = (
    "set -e; command -v git >/dev/null || "
    '{ echo "git is not in the environment or image of this job." >&2; exit 127; }; '
    "[ -d code/.git ] || { "
    '[ ! -e code ] || { echo "The folder code has other content. Nothing is cloned." >&2; exit 1; }; '
    "rm -rf .code; (ulimit -f 2097152; GIT_ALLOW_PROTOCOL=https GIT_TERMINAL_PROMPT=0 "
    'timeout 600 git clone --quiet --depth 1 ${2:+--branch "$2"} -- "$1" .code); mv .code code; }; '
    'cd code; shift 2; exec "$@"'
)
_HEAD = ("sh", "-c", _SCRIPT, "git-code")
_ADDRESS = re.compile(r"https://[A-Za-z0-9-][A-Za-z0-9.-]*(:\d{1,5})?/[A-Za-z0-9_./~+-]+")
_REVISION = re.compile(r"([A-Za-z0-9_.][A-Za-z0-9_./+-]*)?")


def address_field() -> forms.RegexField:
    """The field of the address."""
    return forms.RegexField(
        rf"\A{_ADDRESS.pattern}\Z",
        label=gettext_lazy("Git address"),
        required=False,
        max_length=500,
        help_text=gettext_lazy(
            "Each pod with a command clones it, then runs the command in the folder code. Its environment must have "
            "git."
        ),
        error_messages={
            "invalid": gettext_lazy(
                "Enter an https address without a name or password, for example https://host/team/code.git."
            )
        },
    )


def revision_field() -> forms.RegexField:
    """The field of the branch or tag."""
    return forms.RegexField(
        rf"\A{_REVISION.pattern}\Z",
        label=gettext_lazy("Branch or tag"),
        required=False,
        max_length=200,
        help_text=gettext_lazy("Leave empty for the default branch."),
        error_messages={"invalid": gettext_lazy("Enter the name of a branch or tag.")},
    )


def with_code(command: Sequence[str], address: str, revision: str) -> list[str]:
    """The command after a clone of the address."""
    return [*_HEAD, address, revision, *command]


def split(spec: JobSpec) -> tuple[JobSpec, str, str]:
    """The job with its commands alone, the address and the revision; both empty if its commands do not share one."""
    commands = [task.command for task in spec.tasks if task.command]
    size = len(_HEAD) + 2
    heads = {command[:size] for command in commands if len(command) > size}
    if len(heads) != 1 or any(command[:size] not in heads for command in commands):
        return spec, "", ""
    *head, address, revision = heads.pop()
    if tuple(head) != _HEAD or not _ADDRESS.fullmatch(address) or not _REVISION.fullmatch(revision):
        return spec, "", ""
    tasks = tuple(task.model_copy(update={"command": task.command[size:]}) for task in spec.tasks)
    return spec.model_copy(update={"tasks": tasks}), address, revision
