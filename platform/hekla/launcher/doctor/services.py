"""Checks of the services that the configuration names: PostgreSQL, Valkey, and clusters of Kubernetes."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import redis
import yaml

from hekla.backends.base import HealthProblem
from hekla.backends.kind import BackendContext
from hekla.backends.registry import check_health
from hekla.domain.translation import gettext_noop as _
from hekla.launcher.doctor.findings import Finding, Severity, literal
from hekla.launcher.embedded.programs import postgres_programs, valkey_program
from hekla.launcher.terminal import LaunchRefused
from hekla.launcher.up.home import Home
from hekla.lib import clock

_TIMEOUT_SECONDS = 5
_TOLERATED_SECONDS = 5.0


def check_stores() -> Iterator[Finding]:
    """PostgreSQL and Valkey: those of the configuration must answer, and the programs of embedded ones must exist."""
    if url := os.environ.get("DATABASE_URL"):
        yield from _postgres(url)
    else:
        yield _program("PostgreSQL", postgres_programs)
    if url := os.environ.get("VALKEY_URL"):
        yield _valkey(url)
    else:
        yield _program("Valkey", valkey_program)


def check_contexts(home: Home) -> Iterator[Finding]:
    """Whether the API server of each context in the kubeconfigs of the data folder answers. Hekla starts without."""
    for path in sorted((home.path / "kubeconfigs").glob("*")):
        for name in _contexts(path):
            config = {"kubeconfig": path.name, "context": name}
            found = check_health("kubernetes", config, BackendContext("doctor", home.path, clock.now))
            values = {"context": f"{path.name}: {name}"}
            if found is None or found.problem is None:
                yield Finding("kubernetes", Severity.OK, (_("The cluster of the context {context} answers."),), values)
            else:
                sentence = _("The cluster of the context {context} cannot be used.")
                yield Finding("kubernetes", Severity.WARNING, (sentence, *_detail(found.detail, found.problem)), values)


def _contexts(path: Path) -> list[str]:
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
        return [str(one["name"]) for one in found["contexts"]]
    except (OSError, ValueError, yaml.YAMLError, KeyError, TypeError):
        return [""]


def _detail(detail: str, problem: HealthProblem) -> tuple[str, ...]:
    return (literal(detail or str(problem)),)


def _postgres(url: str) -> Iterator[Finding]:
    values: dict[str, object] = {"name": "PostgreSQL", "place": _place(url)}
    try:
        with psycopg.connect(url, connect_timeout=_TIMEOUT_SECONDS) as connection:
            row = connection.execute("SELECT extract(epoch FROM clock_timestamp())").fetchone()
    except psycopg.Error as error:
        yield Finding("postgresql", Severity.PROBLEM, (_NO_ANSWER, literal(str(error))), values)
        return
    yield Finding("postgresql", Severity.OK, (_ANSWERS,), values)
    apart = abs(time.time() - float(row[0])) if row else 0.0
    if apart > _TOLERATED_SECONDS:
        sentence = _("The clocks of this machine and of PostgreSQL differ by {seconds} s.")
        yield Finding("clock", Severity.PROBLEM, (sentence,), {"seconds": round(apart)})


def _valkey(url: str) -> Finding:
    values: dict[str, object] = {"name": "Valkey", "place": _place(url)}
    try:
        with redis.Redis.from_url(url, socket_connect_timeout=_TIMEOUT_SECONDS, socket_timeout=_TIMEOUT_SECONDS) as one:
            one.ping()
    except (redis.RedisError, ValueError) as error:
        return Finding("valkey", Severity.PROBLEM, (_NO_ANSWER, literal(str(error))), values)
    if not (url.startswith("unix:") or urlsplit(url).password):
        sentence = _("{name} at {place} needs no password: pods of this machine can use it.")
        return Finding("valkey", Severity.WARNING, (sentence,), values)
    return Finding("valkey", Severity.OK, (_ANSWERS,), values)


_ANSWERS = _("{name} at {place} answers.")
_NO_ANSWER = _("{name} at {place} does not answer.")


def _program(name: str, find: Callable[[], Path]) -> Finding:
    try:
        find()
    except LaunchRefused as refused:
        return Finding(name.lower(), Severity.PROBLEM, (literal(refused.message),), {"name": name})
    return Finding(name.lower(), Severity.OK, (_("Hekla starts its own {name}."),), {"name": name})


def _place(url: str) -> str:
    """The address without user name and password."""
    parts = urlsplit(url)
    return parts.netloc.rpartition("@")[2] or parts.path or parts.query
