"""Web processes share a pool of connections. Other processes have one connection per thread."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hekla.project.database import from_url, share_connections

PLATFORM = Path(__file__).parents[2] / "platform"

# Forty concurrent requests, each with a query of 20 ms. Then a health check while all connections are in use.
REQUESTS = """
import asyncio, json, threading
from hekla.project.asgi import application
import django.urls
from asgiref.testing import ApplicationCommunicator
from django.contrib.auth.decorators import login_not_required
from django.db import connection
from django.http import HttpResponse
from django.urls import path

@login_not_required
def slow(request):
    connection.cursor().execute("SELECT pg_sleep(0.02)")
    return HttpResponse(str(connection.connection.info.backend_pid))

urls = django.urls.get_resolver()
urls.url_patterns.append(path("slow", slow))
urls._populated = False

async def get(address):
    scope = {"type": "http", "method": "GET", "path": address, "query_string": b""}
    scope["headers"] = [(b"host", b"localhost")]
    communicator = ApplicationCommunicator(application, scope)
    await communicator.send_input({"type": "http.request", "body": b""})
    start = await communicator.receive_output(timeout=20)
    body = await communicator.receive_output(timeout=20)
    await communicator.wait()
    return start["status"], body["body"].decode()

async def main():
    answers = await asyncio.gather(*(get("/slow") for _ in range(40)))
    pool = connection.pool
    idle = pool.get_stats()
    connections = [pool.getconn() for _ in range(pool.max_size)]
    health = await get("/healthz")
    for one in connections:
        pool.putconn(one)
    return {"statuses": sorted({status for status, _ in answers}), "processes": len({body for _, body in answers}),
            "in_use": idle["pool_size"] - idle["pool_available"], "health": health}

found = asyncio.run(main())
connection.close_pool()
print(json.dumps(found | {"threads": [t.name for t in threading.enumerate() if t.name.startswith("pool-")]}))
"""


def run(code: str, **environment: str) -> str:
    everything = {**os.environ, "PYTHONPATH": str(PLATFORM), "DJANGO_SETTINGS_MODULE": "hekla.project.settings"}
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(command, env={**everything, **environment}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_requests_share_a_bounded_pool_and_health_checks_do_not_need_it():
    found = json.loads(run(REQUESTS, HEKLA_DATABASE_POOL="5").splitlines()[-1])
    assert found["statuses"] == [200]
    assert 1 <= found["processes"] <= 5
    assert found["in_use"] == 0, "a request that ended kept its connection"
    assert found["health"] == [200, "ok"]
    assert found["threads"] == []


@pytest.mark.parametrize(("module", "size"), [("asgi", 7), ("celery", None)])
def test_only_web_processes_have_a_pool(module, size):
    """The settings are loaded first, as in a fork of the preloaded process of `manage.py up`."""
    code = (
        f"import django; django.setup()\nimport hekla.project.{module}\nfrom django.db import connection\n"
        "found = connection.settings_dict\n"
        "print(found['OPTIONS'].get('pool', {}).get('max_size'), found['CONN_MAX_AGE'])"
    )
    assert run(code, HEKLA_DATABASE_POOL="7").split() == [str(size), "0" if size else "None"]


def test_pool_has_its_configured_size_and_keeps_other_options():
    url = "postgresql://u:p@h:1/n?sslmode=require"
    pooled, unpooled = from_url(url), from_url(url)
    share_connections(pooled, 7)
    assert pooled["OPTIONS"]["pool"]["max_size"] == 7
    assert pooled["OPTIONS"]["sslmode"] == "require"
    assert pooled["CONN_MAX_AGE"] == 0
    assert unpooled["OPTIONS"] == {"sslmode": "require"}
    assert unpooled["CONN_MAX_AGE"] is None
