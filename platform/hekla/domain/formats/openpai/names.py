"""Converts names of jobs, task roles and virtual clusters to Hekla's names, which allow fewer characters, and back."""

import hashlib
import re
from collections.abc import Iterable

from hekla.domain.job_problems import MAX_HOST_NAME
from hekla.domain.jobspec import MAX_JOB_NAME

NAME = re.compile(r"[A-Za-z0-9_.~-]{1,255}")
"""Allowed names of jobs, task roles and ports in one of the versions."""
MAX_ROLE = 30
_DIGITS = 5
_OTHERS = re.compile(r"[^a-z0-9]+")


def label(text: str, most: int = MAX_HOST_NAME, otherwise: str = "job") -> str:
    """The text as a name. A long text is cut, and gets a suffix that distinguishes it from similar ones."""
    plain = _OTHERS.sub("-", text.lower()).strip("-") or otherwise
    return plain if len(plain) <= most else f"{plain[: most - 7].rstrip('-')}-{mark(text)}"


def mark(text: str) -> str:
    """Six hexadecimal digits that identify this text."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:6]


def job_label(name: str, tasks: Iterable[str]) -> str:
    """The job's name, short enough for the host names of its pods."""
    longest = max(map(len, tasks), default=0)
    return label(name, min(MAX_JOB_NAME, MAX_HOST_NAME - longest - _DIGITS - 2))


def role_labels(names: Iterable[str]) -> list[str]:
    """The tasks' names, without duplicates."""
    found: list[str] = []
    for name in names:
        plain = label(name, MAX_ROLE, "task")
        found.append(plain if plain not in found else f"{plain[: MAX_ROLE - 7]}-{mark(name)}")
    return found


def identifier(text: str) -> str:
    """The name of a task as the name of a role, which must be valid in variable names."""
    plain = re.sub(r"[^A-Za-z0-9_]", "_", text)
    return f"_{plain}" if plain[:1].isdigit() else plain
