"""A policy's extender is asked by the controller, and can neither hold it up nor fill its memory."""

import json
import threading
import time
from collections.abc import Iterator, Mapping
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from pydantic import ValidationError
from tests.controller.conftest import World
from tests.controller.test_cluster_controller import phase, submit
from tests.simulation.conftest import WorldFactory, found, spec
from tests.support.dripping_server import dripping_server

from hekla.apps.clusters import leases
from hekla.apps.clusters import services as clusters
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs.models import Job, Pod
from hekla.controller import extender_calls
from hekla.controller.controllers import controllers
from hekla.controller.extender_calls import ExtenderCalls, NoAnswer
from hekla.lib import clock
from hekla.project.config import Config
from hekla.simulation import what_if
from hekla.simulation.what_if import StartVerdict

__all__ = ["found"]
POLICY = """\
actions: "enqueue, allocate"
tiers:
- plugins: [{name: gang}, {name: predicates}, {name: proportion}]
- plugins:
  - {name: extender, arguments: {extender: {urlPrefix: "%s/v1", predicateVerb: filter, httpTimeout: 30s}}}
"""
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
SLOW = {
    "head": (b"HTTP/1.1 200 OK\r\nX: ", b"x"),
    "body": (HEAD + b"Content-Length: 100000\r\n\r\n", b" "),
    "body without a length": (HEAD + b"\r\n", b" "),
}
USELESS = {
    "an error": (500, b"{}"),
    "another address": (302, b"{}"),
    "no JSON": (200, b"<html>"),
    "deep JSON": (200, b"[" * 100_000),
    "too much": (200, b"[%s]" % (b"1," * extender_calls.MOST_BYTES)),
}


class Extender:
    """A real one, which answers with `status` and `body`. It keeps the requests."""

    def __init__(self) -> None:
        self.received: list[Mapping[str, Any]] = []
        self.status, self.body = 200, b'{"refused": {}}'
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                outer.received.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(outer.status)
                self.send_header("Content-Length", str(len(outer.body)))
                if outer.status == 302:
                    self.send_header("Location", f"{outer.url}/v1/elsewhere")
                self.end_headers()
                self.wfile.write(outer.body)

            def log_message(self, *_arguments: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def refuse(self, **reasons: str) -> None:
        """From now on it rejects these nodes."""
        self.body = json.dumps({"refused": reasons}).encode()


@pytest.fixture
def extender(settings: Any) -> Iterator[Extender]:
    made = Extender()
    thread = threading.Thread(target=made.server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    settings.EXTENDERS = [made.url]
    yield made
    made.server.shutdown()
    made.server.server_close()
    thread.join()


@pytest.fixture
def calls() -> Iterator[ExtenderCalls]:
    made = ExtenderCalls()
    made.begin_cycle()
    yield made
    made.close()


def ask(calls: ExtenderCalls, url: str, seconds: float = 5.0) -> Any:
    return calls(f"{url}/v1/filter", {"nodes": ["n"]}, seconds)


def activate(world: World, url: str) -> None:
    clusters.set_policy(world.cluster, POLICY % url, note="", by=None, actor=PLATFORM, now=clock.now())


def waiting(job: Job) -> str:
    return str(Job.objects.get(pk=job.pk).waiting)


def test_extender_decides_which_nodes_a_pod_may_use(simulated: World, extender: Extender) -> None:
    extender.refuse(n="not on Fridays")
    activate(simulated, extender.url)
    job = submit(simulated, "asks", ["true"], seconds=600)
    simulated.reconcile_until(lambda: "not on Fridays" in waiting(job))
    assert not Pod.objects.exclude(node="").exists()
    assert extender.received[-1]["nodes"] == ["n"]
    assert extender.received[-1]["task"]["job"] == str(job.pk)
    extender.refuse()
    controllers.get(simulated.cluster.pk).full_look.done_at = None
    simulated.reconcile_until(lambda: phase(job) == "running")


def test_jobs_wait_while_the_extender_is_away_and_start_when_it_is_back(
    simulated: World, extender: Extender, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extender_calls, "REST_SECONDS", 0.5)
    extender.status = 503
    activate(simulated, extender.url)
    job = submit(simulated, "asks", ["true"], seconds=600)
    simulated.reconcile_until(lambda: "extender does not answer" in waiting(job))
    extender.status = 200
    look = controllers.get(simulated.cluster.pk).full_look

    def is_running() -> bool:
        look.done_at = None
        return phase(job) == "running"

    simulated.reconcile_until(is_running)


def test_jobs_show_that_the_extender_is_too_slow(simulated: World, settings: Any) -> None:
    assert timedelta(seconds=extender_calls.CYCLE_SECONDS) < leases.LIFETIME / 2, "no cycle may cost the lease"
    with dripping_server(*SLOW["body"]) as url:
        settings.EXTENDERS = [url]
        activate(simulated, url)
        jobs = [submit(simulated, f"asks-{number}", ["true"]) for number in range(3)]
        simulated.reconcile_until(lambda: all("extender does not answer" in waiting(job) for job in jobs))


@pytest.mark.parametrize("reason", ["a\0b", "a\ud800b", "a\x1b[31mb", "a\u202eb"])
def test_job_shows_any_reason(simulated: World, extender: Extender, reason: str) -> None:
    extender.refuse(n=reason)
    activate(simulated, extender.url)
    job = submit(simulated, "asks", ["true"])
    simulated.reconcile_until(lambda: "'nodes': {'a" in waiting(job))


def test_prediction_assumes_that_the_extender_agrees(found: WorldFactory, extender: Extender) -> None:
    world = found({})
    extender.refuse(n="never")
    activate(world, extender.url)
    answer = what_if.predict_draft(spec(), tenant=world.tenant, user=world.alice)
    assert answer.verdict is StartVerdict.NOW
    assert extender.received == []


def test_answer_is_returned(calls: ExtenderCalls, extender: Extender) -> None:
    assert ask(calls, extender.url) == {"refused": {}}
    assert extender.received == [{"nodes": ["n"]}]


@pytest.mark.parametrize("case", SLOW)
def test_call_ends_in_time(calls: ExtenderCalls, settings: Any, case: str) -> None:
    with dripping_server(*SLOW[case]) as url:
        settings.EXTENDERS = [url]
        began_at = time.monotonic()
        with pytest.raises(NoAnswer):
            ask(calls, url, seconds=0.5)
        assert time.monotonic() - began_at < 5


def test_calls_of_a_cycle_have_one_limit(calls: ExtenderCalls, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extender_calls, "CYCLE_SECONDS", 0.5)
    monkeypatch.setattr(extender_calls, "FAILURES", 100)
    calls.begin_cycle()
    with dripping_server(*SLOW["body"]) as url:
        settings.EXTENDERS = [url]
        began_at = time.monotonic()
        for _ in range(20):
            with pytest.raises(NoAnswer):
                ask(calls, url)
        assert time.monotonic() - began_at < 5


@pytest.mark.parametrize("case", USELESS)
def test_useless_answer_is_none(calls: ExtenderCalls, extender: Extender, case: str) -> None:
    extender.status, extender.body = USELESS[case]
    with pytest.raises(NoAnswer):
        ask(calls, extender.url)
    assert len(extender.received) == 1, "no redirect is followed"


def test_failing_extender_is_left_alone_for_a_while(
    calls: ExtenderCalls, extender: Extender, monkeypatch: pytest.MonkeyPatch
) -> None:
    extender.status = 500
    for _ in range(10):
        with pytest.raises(NoAnswer):
            ask(calls, extender.url)
    assert len(extender.received) == extender_calls.FAILURES
    until = time.monotonic() + extender_calls.REST_SECONDS + 1
    monkeypatch.setattr(extender_calls.time, "monotonic", lambda: until)
    calls.begin_cycle()
    for _ in range(10):
        with pytest.raises(NoAnswer):
            ask(calls, extender.url)
    assert len(extender.received) == extender_calls.FAILURES + 1, "one call tries it again"


def test_other_addresses_are_not_called(calls: ExtenderCalls, extender: Extender, settings: Any) -> None:
    settings.EXTENDERS = [f"{extender.url}/v2"]
    with pytest.raises(NoAnswer, match="HEKLA_EXTENDERS"):
        ask(calls, extender.url)
    assert extender.received == []


@pytest.mark.parametrize("addresses", ["extender.ml", "ftp://extender", "http://", "http://x?a=b", "http://x:port"])
def test_settings_refuse_other_than_addresses(addresses: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEKLA_EXTENDERS", addresses)
    with pytest.raises(ValidationError, match="extenders"):
        Config()


def test_settings_name_several_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEKLA_EXTENDERS", "http://a:8888/v1, https://b")
    assert Config().extender_addresses == ["http://a:8888/v1", "https://b"]


def test_thread_ends_with_the_controller(calls: ExtenderCalls, extender: Extender) -> None:
    def threads() -> int:
        return sum(one.name == "extender calls" for one in threading.enumerate())

    before = threads()
    ask(calls, extender.url)
    assert threads() == before + 1
    calls.close()
    deadline = time.monotonic() + 10
    while threads() > before:
        assert time.monotonic() < deadline
        time.sleep(0.01)
