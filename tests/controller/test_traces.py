"""One trace from the submission by REST to the bind of the pod, at a collector that really receives it."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from django.urls import reverse
from tests.controller.conftest import World

from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.jobs.models import Job, Pod
from hekla.lib import tracing

SPEC = {"name": "train", "tasks": [{"name": "main", "command": ["sleep", "9"], "replicas": 2}]}


@contextmanager
def collector() -> Iterator[tuple[str, list[Any]]]:
    """The address of a collector, and the spans that it gets."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    spans: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            for of_process in ExportTraceServiceRequest.FromString(body).resource_spans:
                spans.extend(span for scope in of_process.scope_spans for span in scope.spans)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_arguments: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        tracing.configure(f"http://127.0.0.1:{server.server_port}/v1/traces")
        yield f"http://127.0.0.1:{server.server_port}", spans
    finally:
        tracing.configure("")
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("world", ["simulated"], indirect=True)
def test_submission_and_binds_are_one_trace(world: World, client: Any) -> None:
    client.force_login(world.alice, backend="django.contrib.auth.backends.ModelBackend")
    with collector() as (_address, spans):
        answer = client.post(reverse("api:v1:jobs"), json.dumps(SPEC), content_type="application/json")
        assert answer.status_code == 201
        world.reconcile_until(lambda: Pod.objects.filter(phase="running").count() == 2)
        tracing.flush()
        (request,) = [span for span in spans if span.name == "POST api:v1:jobs"]
        trace = [span for span in spans if span.trace_id == request.trace_id]
    below = {span.span_id: span for span in trace}
    parents = {span.name: below[span.parent_span_id].name for span in trace if span.parent_span_id}
    assert parents == {
        "unit of work": "POST api:v1:jobs",
        "controller round": "unit of work",
        "bind pod": "controller round",
    }
    binds = [span for span in trace if span.name == "bind pod"]
    found = [{one.key: one.value.string_value for one in span.attributes} for span in binds]
    assert {one["hekla.job"] for one in found} == {str(Job.objects.get().uid)}
    assert {one["hekla.node"] for one in found} == set(Pod.objects.values_list("node", flat=True))
    assert request.start_time_unix_nano < min(span.start_time_unix_nano for span in binds)
    event = LoggedEvent.objects.get(kind="JobSubmitted")
    assert event.trace.split("-")[1] == request.trace_id.hex()
    assert set(LoggedEvent.objects.filter(actor_id=None).values_list("trace", flat=True)) == {""}


def test_without_a_collector_nothing_is_loaded() -> None:
    script = (
        "import sys; from hekla.lib import tracing\n"
        "with tracing.span('a'): tracing.annotate({'b': 1})\n"
        "assert tracing.current() == tracing.emit('c', {}, parent='00-1-2-01', begin=1, end=2) == ''\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env={"PYTHONPATH": "platform"}
    )
    assert found.stdout.strip() == "[]"


@pytest.mark.parametrize("text", ["", "00-1", "00-zz-1-01", "00-0-0-01"])
def test_malformed_contexts_make_no_span(text: str) -> None:
    with collector():
        assert tracing.emit("a", {}, parent=text, begin=1, end=2) == ""
