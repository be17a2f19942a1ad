"""Which layers of the sandbox this machine offers, in sentences that the start, pages and `hekla doctor` show.

The start imports this before any package is installed.
"""

import json
import os
import subprocess
import sys
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path

from hekla.backends.local.sandbox.order import LANDLOCK, LAYERS, NAMESPACES, SECCOMP
from hekla.domain.translation import gettext_noop

REQUIRED = (NAMESPACES, SECCOMP)
"""Without these, a pod can harm the console and other pods. Landlock checks a second time what namespaces separate."""
_PROBE = Path(__file__).parent / "sandbox" / "probe.py"
_PROBE_SECONDS = 20

_CONTAINERS = gettext_noop("Pods run in containers.")
_APART = gettext_noop("Pods are kept apart by namespaces and seccomp.")
_APART_TWICE = gettext_noop("Pods are kept apart by namespaces, seccomp and Landlock.")
_USERS = gettext_noop("The pods of each tenant have a user of their own.")
_ONE_USER = gettext_noop("All pods run as the console's user.")
_NOT_APART = gettext_noop("Pods are not kept apart from one another and from the console.")
_MISSING = {
    NAMESPACES: gettext_noop("This machine offers no namespaces for pods."),
    SECCOMP: gettext_noop("This machine cannot filter the system calls of pods (seccomp)."),
    LANDLOCK: gettext_noop("This machine has no Landlock, which would check access to files a second time."),
}
_ONE_TENANT = gettext_noop("The cluster serves one tenant only, until an admin accepts the risk.")
_OWN_CPUS = gettext_noop("Pods that request whole CPUs have them for themselves.")
_NO_OWN_CPUS = gettext_noop(
    "No pod has CPUs for itself, because this machine has one CPU, or its container engine cannot set the CPUs of pods."
)
_BY_AFFINITY = gettext_noop("CPUs of pods are set by affinity, which their programs can change.")
_LIMITED = gettext_noop("Limits of memory and CPU are enforced.")
_UNLIMITED = {
    "memory": gettext_noop("Limits of memory are not enforced."),
    "cpu": gettext_noop("Limits of CPU are not enforced."),
}


@cache
def failures() -> Mapping[str, str]:
    """Why each layer does not work here, by layer; empty if all work. Found once in a process: it takes a while."""
    if sys.platform != "linux":
        return dict.fromkeys(LAYERS, f"{sys.platform} has no namespaces, seccomp or Landlock")
    try:
        probe = [sys.executable, "-I", "-S", str(_PROBE)]
        done = subprocess.run(probe, capture_output=True, check=True, timeout=_PROBE_SECONDS)
        found: dict[str, str] = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        return dict.fromkeys(LAYERS, f"The check of this machine failed: {error}")
    return {layer: reason for layer, reason in found.items() if reason}


def is_complete() -> bool:
    """Whether pods of different tenants can be kept apart on this machine."""
    return not failures().keys() & set(REQUIRED)


def missing() -> str:
    """The missing layers, each with its reason; empty if none is missing."""
    return "; ".join(f"{layer} ({reason})" for layer, reason in failures().items())


def description(limited: Collection[str]) -> str:
    """How this machine keeps pods apart, in sentences that pages translate. `limited`: the enforced limits."""
    return " ".join([*sentences(), *limit_sentences(limited)])


def sentences() -> list[str]:
    """How this machine keeps pods apart, and each missing layer with the kernel's reason."""
    if is_complete():
        found = [_APART if LANDLOCK in failures() else _APART_TWICE, _USERS if os.geteuid() == 0 else _ONE_USER]
    else:
        found = [_NOT_APART, _ONE_TENANT]
    for layer, reason in failures().items():
        found += [_MISSING[layer], f"{reason.rstrip('.')}."]
    return found


def limit_sentences(limited: Collection[str]) -> list[str]:
    """Which limits of pods are enforced here, of those in `limited`, or that all are."""
    return [sentence for name, sentence in _UNLIMITED.items() if name not in limited] or [_LIMITED]


def cpu_sentences(*, is_possible: bool, is_enforced: bool) -> list[str]:
    """Whether pods have CPUs for themselves, as the configuration wants it, and whether programs could leave theirs."""
    if not is_possible:
        return [_NO_OWN_CPUS]
    return [_OWN_CPUS] if is_enforced else [_OWN_CPUS, _BY_AFFINITY]


def of_containers(engine: str, limited: Collection[str]) -> str:
    """How containers keep pods apart. `engine`: with its version. `limited`: the limits that it enforces."""
    user = _USERS if os.geteuid() == 0 else _ONE_USER
    return " ".join([_CONTAINERS, user, *limit_sentences(limited), f"({engine})"])
