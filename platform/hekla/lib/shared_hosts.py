"""The host below whose paths all sessions are, for consoles without a wildcard domain.

It must not be the console's, nor share cookies with it: what pods serve there is hostile to the console.
"""

import re
from collections.abc import Iterable
from urllib.parse import urlsplit

LOCAL = "localhost"
_NAME = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)(\.(?!-)[a-z0-9-]{1,63}(?<!-))*")


def checked_host(host: str, *, console: str, domain: str, names: Iterable[str]) -> str:
    """The host itself; empty if there is none. Raises ValueError if sessions must not be there.

    `console`: the URL of the console; `domain`: of sessions with hosts of their own; `names`: the console's other
    hosts.
    """
    if host and (problem := _problem(host, console, domain, names)):
        raise ValueError(f"HEKLA_WORKBENCH_HOST: {problem}")
    return host


def _problem(host: str, console: str, domain: str, names: Iterable[str]) -> str:
    if not _NAME.fullmatch(host):
        return f"“{host}” is no host name in lower case. A port or a path cannot be part of it."
    if domain != LOCAL:
        return "HEKLA_WORKBENCH_DOMAIN is set too. Sessions have either hosts of their own, or share this one."
    parts = urlsplit(console)
    for name in filter(None, [parts.hostname, *map(_bare, names)]):
        if name == host:
            return f"“{host}” is a host of the console. Sessions need another name: another port is not enough."
        if _shares_cookies(name, host):
            return f"“{host}” is above or below “{name}”, a host of the console: pages could set its cookies."
    if parts.scheme != "https" and not _is_local(host):
        return "HEKLA_PUBLIC_URL must begin with https, else browsers do not delete what one session leaves behind."
    return ""


def _bare(name: str) -> str:
    """A name in ALLOWED_HOSTS without the dot before it, and without a port. Empty if it allows all."""
    return "" if name == "*" else name.strip().lower().removeprefix(".").partition(":")[0]


def _shares_cookies(one: str, other: str) -> bool:
    """Whether one is above the other. Nothing shares cookies through `localhost`: it cannot be the domain of one."""
    return LOCAL not in (one, other) and (one.endswith(f".{other}") or other.endswith(f".{one}"))


def _is_local(host: str) -> bool:
    return f".{host}".endswith(f".{LOCAL}")
