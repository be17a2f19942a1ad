"""Measures the bytes of a first visit to a page, with each file compressed as by a server.

Plotly is not included, because pages load it with their first plot.
"""

import gzip
import re
from collections.abc import Iterator
from functools import cache
from http import HTTPStatus
from pathlib import Path
from posixpath import dirname, join, normpath

from django.conf import settings
from django.contrib.staticfiles import finders
from django.test import Client
from django.urls import reverse

from hekla.apps.accounts.models import User
from hekla.apps.accounts.people_by_id import BACKEND
from hekla.bench.console.world import ADMIN, some_jobs

_IN_PAGES = re.compile(rf"(?:src|href|data-icons)=\"{settings.STATIC_URL}([^\"#?]+)")
_IN_FILES = {".js": re.compile(r"from \"(\./[^\"]+)\""), ".css": re.compile(r"url\(\"?([^\")]+)")}


def measure() -> dict[str, int]:
    """Bytes by page, including all files that it loads."""
    client = Client(headers={"host": "localhost"})
    client.force_login(User.objects.get(username=ADMIN), backend=BACKEND)
    job = some_jobs(1, phase="running")[0]
    addresses = {
        "home": reverse("home"),
        "jobs": reverse("jobs:list"),
        "job": reverse("jobs:detail", args=[job.uid]),
        "nodes": reverse("clusters:nodes"),
        "queues": reverse("queues:list"),
    }
    return {name: _weight(client.get(address).content) for name, address in addresses.items()}


def _weight(page: bytes) -> int:
    named = set(_IN_PAGES.findall(page.decode()))
    files: set[str] = set()
    for name in named:
        files |= set(_with_what_it_loads(name, files))
    return len(gzip.compress(page)) + sum(_compressed(name) for name in files)


@cache
def _compressed(name: str) -> int:
    """The compressed size of a file. Most pages load the same files."""
    return len(gzip.compress(_read(name)))


def _with_what_it_loads(name: str, known: set[str]) -> Iterator[str]:
    if name in known:
        return
    known.add(name)
    yield name
    pattern = _IN_FILES.get(Path(name).suffix)
    for found in pattern.findall(_read(name).decode()) if pattern else ():
        if not found.startswith("data:"):
            yield from _with_what_it_loads(normpath(join(dirname(name), found)), known)


@cache
def _read(name: str) -> bytes:
    """A file, or else a bundle, which is made at its first request."""
    if path := finders.find(name):
        return Path(str(path)).read_bytes()
    response = Client(headers={"host": "localhost"}).get(f"{settings.STATIC_URL}{name}")
    if response.status_code != HTTPStatus.OK:
        raise FileNotFoundError(f"{settings.STATIC_URL}{name} is named by a page and is not there")
    return response.content
