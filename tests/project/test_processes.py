"""Processes of the console: what a web process and a worker load and share.

One process of each kind answers all tests: to load the console takes four seconds.
"""

import json
import os
import subprocess
import sys
from http import HTTPStatus
from typing import Any

import pytest
from django.conf import settings

from hekla.lib.checkout import CHECKOUT
from hekla.project.database import from_url, share_connections

MAX_LOG_CHARACTERS = 400
LATE = {
    *("kubernetes", "numpy", "plotly", "pyarrow", "reportlab", "rest_framework.views", "asyncssh"),
    *("hekla.api.urls", "hekla.controller.tasks", "hekla.controller.watcher", "hekla.domain.jobspec", "hekla.engine"),
    *("hekla.live.hub", "hekla.live.routing", "hekla.scheduling", "hekla.simulation"),
}
CLIENT, PROXY, TRUSTED_PROXY = "203.0.113.7", "127.0.0.1", "10.1.2.3"

# The settings are loaded first, as in a fork of the preloaded process of `manage.py up`. Forty concurrent requests with
# a query of 20 ms each. Then a health check while all connections are in use. Then a request through two proxies.
WEB = """
import asyncio, json, sys, threading
import django
django.setup()
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
    start = await communicator.receive_output(timeout=60)
    body = await communicator.receive_output(timeout=60)
    await communicator.wait()
    return start["status"], body["body"].decode()

async def main():
    sign_in, loaded = await get("/accounts/sign-in/"), sorted(sys.modules)
    rest = await get("/api/v1/jobs/")
    answers = await asyncio.gather(*(get("/slow") for _ in range(40)))
    pool = connection.pool
    idle = pool.get_stats()
    connections = [pool.getconn() for _ in range(pool.max_size)]
    health = await get("/healthz")
    for one in connections:
        pool.putconn(one)
    return {"statuses": sorted({status for status, _ in answers}), "processes": len({body for _, body in answers}),
            "in_use": idle["pool_size"] - idle["pool_available"], "health": health,
            "sign_in": sign_in[0], "loaded": loaded, "rest": rest[0]}

async def clients():
    found = []
    async def note(scope, receive, send):
        found.append([scope["client"][0], scope["scheme"]])
    application.app = note
    headers = [(b"x-forwarded-for", sys.argv[1].encode()), (b"x-forwarded-proto", b"https")]
    for sender in sys.argv[2:]:
        await application({"type": "http", "client": (sender, 1), "scheme": "http", "headers": headers}, None, None)
    return found

found = asyncio.run(main())
connection.close_pool()
found["threads"] = [t.name for t in threading.enumerate() if t.name.startswith("pool-")]
shared = [connection.settings_dict["OPTIONS"].get("pool", {}).get("max_size"), connection.settings_dict["CONN_MAX_AGE"]]
print(json.dumps(found | {"clients": asyncio.run(clients()), "shared": shared}))
"""

RUN_PERIODIC_TASKS = """
import django, json
django.setup()
from hekla.project.celery import app
from django.db import connection
app.loader.import_default_modules()
for entry in app.conf.beat_schedule.values():
    app.tasks[entry["task"]].apply(args=entry.get("args", ()))
print(json.dumps(["pool" in connection.settings_dict["OPTIONS"], connection.settings_dict["CONN_MAX_AGE"]]))
"""


def run(*argv: str, **environment: str) -> subprocess.CompletedProcess[str]:
    ours = {"PYTHONPATH": str(CHECKOUT / "platform"), "DJANGO_SETTINGS_MODULE": "hekla.project.settings"}
    everything = os.environ | ours | environment
    done = subprocess.run([sys.executable, *argv], env=everything, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def web() -> dict[str, Any]:
    """What the web process found."""
    environment = {"HEKLA_DATABASE_POOL": "5", "HEKLA_TRUSTED_PROXIES": "10.0.0.0/8"}
    done = run("-W", "ignore", "-c", WEB, CLIENT, PROXY, TRUSTED_PROXY, **environment)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.fixture(scope="module")
def worker() -> subprocess.CompletedProcess[str]:
    """The worker without a database, after it ran each periodic task."""
    return run("-c", RUN_PERIODIC_TASKS, DATABASE_URL="postgresql:///none?host=/nonexistent", HEKLA_DATABASE_POOL="7")


def test_requests_share_a_bounded_pool_and_health_checks_do_not_need_it(web: dict[str, Any]) -> None:
    assert web["statuses"] == [200]
    assert 1 <= web["processes"] <= 5
    assert web["in_use"] == 0, "a request that ended kept its connection"
    assert web["health"] == [200, "ok"]
    assert web["threads"] == []


def test_only_web_processes_have_a_pool(web: dict[str, Any], worker: subprocess.CompletedProcess[str]) -> None:
    assert web["shared"] == [5, 0]
    assert json.loads(worker.stdout) == [False, None]


def test_pool_has_its_configured_size_and_keeps_other_options() -> None:
    url = "postgresql://u:p@h:1/n?sslmode=require"
    pooled, unpooled = from_url(url), from_url(url)
    share_connections(pooled, 7)
    assert pooled["OPTIONS"]["pool"]["max_size"] == 7
    assert pooled["OPTIONS"]["sslmode"] == "require"
    assert pooled["CONN_MAX_AGE"] == 0
    assert unpooled["OPTIONS"] == {"sslmode": "require"}
    assert unpooled["CONN_MAX_AGE"] is None


def test_web_process_believes_the_proxies_of_its_settings(web: dict[str, Any]) -> None:
    assert web["clients"] == [[PROXY, "http"], [CLIENT, "https"]]


def test_sign_in_page_answers_before_the_other_pages_are_loaded(web: dict[str, Any]) -> None:
    """Everybody waits for these modules at each start. The parts that need more import it in the function that does."""
    assert web["sign_in"] == 200
    loaded = set(web["loaded"])
    views = {name for name in loaded if name.startswith("hekla.pages.") and "views" in name.rpartition(".")[2]}
    assert views == {"hekla.pages.lazy_views", "hekla.pages.signin.views"}
    assert not loaded & LATE


def test_web_server_is_imported_before_django_is_set_up() -> None:
    assert "--lazy" in run("-m", "hekla.launcher.web_server", "--help").stdout


def test_rest_is_loaded_by_its_first_request(web: dict[str, Any]) -> None:
    assert web["rest"] == HTTPStatus.UNAUTHORIZED


def test_periodic_tasks_without_a_database_log_one_line_each(worker: subprocess.CompletedProcess[str]) -> None:
    lines = worker.stderr.splitlines()
    named = sorted(entry["task"] for entry in settings.CELERY_BEAT_SCHEDULE.values())
    assert len(lines) == len(named), worker.stderr
    assert sorted(name for line in lines for name in {*named} if f"{name}: no database now" in line) == named
    assert max(map(len, lines)) <= MAX_LOG_CHARACTERS
