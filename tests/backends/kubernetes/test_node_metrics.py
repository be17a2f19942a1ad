"""The usage of nodes as a cluster measures it: what is read, what is left out, and when it is asked."""

import gzip
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.kubernetes.metrics_server import MetricsServer, metrics_server
from tests.support.dripping_server import dripping_server
from tests.support.silent_server import silent_server

from hekla.backends.base import BackendError, NodeMetrics, Observation, PodKey, PodMetrics
from hekla.backends.config import parse_config
from hekla.backends.kubernetes import answer_limits, metrics_poller, prometheus
from hekla.backends.kubernetes.api import ApiError, Json
from hekla.backends.kubernetes.config import KubernetesConfig, PrometheusConfig
from hekla.backends.kubernetes.node_metrics import MetricsApi, NodeMetricsPoller, Sizes, WithFallback
from hekla.backends.kubernetes.permissions import NODE_METRICS, REQUIRED
from hekla.backends.kubernetes.pod_metrics import PodMetricsPoller
from hekla.backends.kubernetes.pod_state import PodState
from hekla.backends.kubernetes.prometheus import Prometheus
from hekla.domain.errors import Invalid
from hekla.domain.node_usage import CardMetrics
from hekla.domain.phases import PodPhase
from hekla.domain.resources import Resources

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
SIZES = {name: Resources.parse({"cpu": "4", "memory": "8Gi"}) for name in ("a", "b", "c")}
NODES = [{"metadata": {"name": name}, "status": {"capacity": {"cpu": "4", "memory": "8Gi"}}} for name in SIZES]


class FakeApi:
    """Has these NodeMetrics objects."""

    def __init__(self, *items: Any) -> None:
        self.items = items

    def pages(self, path: str) -> Iterator[Json]:
        assert path == "/apis/metrics.k8s.io/v1beta1/nodes"
        yield {"metadata": {}, "items": self.items}


def metrics(name: str, cpu: str = "1", memory: str = "2Gi", at: str = "2026-05-04T11:59:40Z") -> Json:
    return {"metadata": {"name": name}, "timestamp": at, "usage": {"cpu": cpu, "memory": memory}}


def read(*items: Any) -> Sequence[NodeMetrics]:
    return MetricsApi(FakeApi(*items), lambda: NOW).measure(SIZES)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("cpu", "percent"), [("1", 25), ("500m", 12.5), ("250000000n", 6.25), ("500000u", 12.5), ("0", 0)]
)
def test_usage_is_in_per_cent_of_the_whole_node(cpu: str, percent: float) -> None:
    (found,) = read(metrics("a", cpu))
    assert (found.cpu, found.memory, found.whole) == (percent, 25, SIZES["a"])
    assert found.at == NOW - timedelta(seconds=20)


def test_unknown_and_invalid_objects_are_left_out_and_times_are_not_in_the_future() -> None:
    invalid = [None, {}, metrics("a", "many"), metrics("a", "-1"), metrics("a", "9" * 90 + "n"), metrics("a", at="x")]
    invalid += [metrics("a", at="2026-05-04T11:59:40"), {**metrics("a"), "usage": 5}]
    (found,) = read(*invalid, metrics("elsewhere"), metrics("b", at="2099-01-01T00:00:00Z"))
    assert (found.name, found.at) == ("b", NOW)


def test_node_without_a_size_uses_nothing_of_it() -> None:
    poller = NodeMetricsPoller(Measured())
    poller.know_nodes([{"metadata": {"name": "a"}}])
    assert poller._sizes == {"a": Resources()}
    (found,) = MetricsApi(FakeApi(metrics("a")), lambda: NOW).measure({"a": Resources()})  # type: ignore[arg-type]
    assert (found.cpu, found.memory) == (0, 0)


class Measured:
    """A source that answers this."""

    def __init__(self, *answers: Exception | list[NodeMetrics]) -> None:
        self.answers, self.count = list(answers), 0

    def measure(self, sizes: Sizes) -> Sequence[NodeMetrics]:
        self.count += 1
        answer = self.answers.pop(0) if self.answers else []
        if isinstance(answer, Exception):
            raise answer
        return answer


FOUND = [NodeMetrics("a", NOW, 1, 2, SIZES["a"])]


def test_only_the_thread_asks_and_others_get_its_last_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_poller, "_EVERY_SECONDS", 0.01)
    source = Measured(FOUND, *[FOUND] * 1000)
    poller = NodeMetricsPoller(source)
    assert poller.measure_nodes() == ()
    assert poller._thread is None, "no node is known yet"
    poller.know_nodes(NODES)
    wait_for(poller, FOUND)
    poller.close()
    count = source.count
    assert poller.measure_nodes() == ()
    assert source.count == count


def wait_for(poller: NodeMetricsPoller, wanted: Sequence[NodeMetrics]) -> None:
    for _ in range(500):
        if list(poller.measure_nodes()) == list(wanted):
            return
        poller._closing.wait(0.01)
    pytest.fail("it measures something else")


@pytest.mark.parametrize(
    ("error", "pause"),
    [
        (ApiError(404, "", ""), metrics_poller._ABSENCE_VALID_SECONDS),
        (ApiError(403, "", ""), metrics_poller._ABSENCE_VALID_SECONDS),
        (ApiError(503, "", ""), metrics_poller._EVERY_SECONDS),
        (BackendError("silent"), metrics_poller._EVERY_SECONDS),
        (TypeError("not understood"), metrics_poller._EVERY_SECONDS),
    ],
)
def test_after_a_failure_there_is_no_usage_and_it_is_read_again(error: Exception, pause: float) -> None:
    poller = NodeMetricsPoller(Measured(FOUND, error))
    assert poller._poll() == metrics_poller._EVERY_SECONDS
    assert poller.measure_nodes() == FOUND
    assert poller._poll() == pause
    assert poller.measure_nodes() == ()


def test_thread_ends_when_nobody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_poller, "_EVERY_SECONDS", 0.01)
    monkeypatch.setattr(metrics_poller, "_WANTED_FOR_SECONDS", 0.05)
    poller = NodeMetricsPoller(Measured())
    poller.know_nodes(NODES)
    poller.measure_nodes()
    thread = poller._thread
    assert thread is not None
    thread.join(10)
    assert not thread.is_alive()
    poller.measure_nodes()
    assert poller._thread not in (None, thread)
    poller.close()


def test_permission_differs_in_words_from_that_on_nodes() -> None:
    assert str(NODE_METRICS) == "list nodes.metrics.k8s.io *"
    assert str(NODE_METRICS) not in map(str, {*REQUIRED} - {NODE_METRICS})


# Prometheus.


@pytest.fixture
def server() -> Iterator[MetricsServer]:
    with metrics_server() as made:
        yield made


def test_prometheus_answers_for_all_nodes_at_once(server: MetricsServer) -> None:
    server.prometheus = {
        "node_cpu_seconds_total": {"a:9100": 40, "b": 50, "c": float("nan"), "elsewhere": 1},
        "node_memory_MemAvailable_bytes": {"a:9100": 20, "b": 30, "c": 10},
    }
    found = Prometheus(PrometheusConfig(address=f"{server.url}/"), lambda: NOW).measure(SIZES)
    assert [(one.name, one.cpu, one.memory) for one in found] == [("a", 40, 20), ("b", 50, 30)]
    assert len(server.requests) == 4


NAMESPACE = "hekla"
POD = PodKey("j" * 32, "worker", 0, 1)


def pod_state(key: PodKey, namespace: str = NAMESPACE) -> PodState:
    return PodState((namespace, key.name), "u", 1, "a", "", Observation(key, PodPhase.RUNNING, NOW))


def test_usage_of_pods_comes_from_the_kubelets_and_the_exporter_of_gpus(server: MetricsServer) -> None:
    own, other = f"{NAMESPACE}/{POD.name}", "elsewhere/x"
    server.prometheus = {
        "container_cpu_usage_seconds_total": {own: 12.5, other: 1, f"{NAMESPACE}/half": 2},
        "container_memory_working_set_bytes": {own: 2**30, other: 1},
        "DCGM_FI_DEV_GPU_UTIL": {own: 0.91, other: 1},
    }
    source = Prometheus(PrometheusConfig(address=server.url), lambda: NOW)
    poller = PodMetricsPoller(source, lambda: [pod_state(POD), pod_state(replace(POD, index=1))])
    poller._poll()
    assert poller.measure([]) == []
    assert list(poller.measure([POD, replace(POD, index=1)])) == [PodMetrics(POD, NOW, 12.5, 2**30, 0.91, None)]
    poller.close()


def test_pods_without_gpus_or_without_an_answer_have_no_such_figures(server: MetricsServer) -> None:
    own = f"{NAMESPACE}/{POD.name}"
    server.prometheus = {
        "container_cpu_usage_seconds_total": {own: 1, "x": 5},
        "container_memory_working_set_bytes": {own: 5, "x": 5},
        "DCGM_FI_DEV_GPU_UTIL": {},
    }
    source = Prometheus(PrometheusConfig(address=server.url), lambda: NOW)
    (found,) = source.measure_pods({NAMESPACE})
    assert (found.pod, found.gpus_busy) == ((NAMESPACE, POD.name), None)
    assert source.measure_pods(()) == []


@pytest.mark.parametrize("answer", [None, [], {"data": {}}, {"data": {"result": [{"metric": 5, "value": []}]}}])
def test_prometheus_that_answers_anything_else_fails(
    server: MetricsServer, answer: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "answer", lambda _path: answer)
    with pytest.raises(BackendError):
        Prometheus(PrometheusConfig(address=server.url), lambda: NOW).measure(SIZES)


def test_prometheus_without_an_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prometheus, "_TIMEOUT", prometheus.urllib3.Timeout(connect=1, read=0.3))
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n"
    with dripping_server(head, b" ") as url, pytest.raises(BackendError):
        Prometheus(PrometheusConfig(address=url), lambda: NOW).measure(SIZES)
    with silent_server() as url, pytest.raises(BackendError):
        Prometheus(PrometheusConfig(address=url.replace("https", "http")), lambda: NOW).measure(SIZES)


def test_packed_answer_of_prometheus_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_limits, "MAX_ANSWER_BYTES", 10_000)
    for spaces in (9_000, 1_000_000):
        body = gzip.compress(b'{"data": {"result": []}}' + b" " * spaces)
        head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        is_long = spaces > answer_limits.MAX_ANSWER_BYTES
        refusal = pytest.raises(BackendError, match="too long") if is_long else nullcontext()
        with dripping_server(head + body, b"") as url, refusal:
            Prometheus(PrometheusConfig(address=url), lambda: NOW).require_answer()


@pytest.mark.parametrize(
    "address",
    [
        "ftp://x",
        "x:9090",
        "http://",
        "http://user@x",
        "http://:secret@prometheus:9090",
        "http://169.254.169.254",
        "http://[fe80::1]:9090",
        "http://x?a=b",
    ],
)
def test_address_of_prometheus_is_checked(address: str) -> None:
    with pytest.raises(Invalid) as refusal:
        parse_config(KubernetesConfig, {"prometheus": {"address": address}})
    assert [problem.path for problem in refusal.value.problems] == ["config.prometheus.address"]


def test_prometheus_knows_the_cards_of_nodes_and_gets_the_token(server: MetricsServer) -> None:
    """The stand-in answers in Prometheus' format, with the names and labels of NVIDIA's exporter."""
    server.prometheus = {
        "node_cpu_seconds_total": {"a:9100": 50, "b:9100": 5},
        "node_memory_MemAvailable_bytes": {"a:9100": 25, "b:9100": 5},
        "DCGM_FI_DEV_GPU_UTIL": {"a#1": 90, "a#0": 10, "a#x": 1, "a#99999": 1, "b#0": -1, "elsewhere#0": 5},
        "DCGM_FI_DEV_FB_USED": {"a#1": 2048},
    }
    found = Prometheus(PrometheusConfig(address=server.url), lambda: NOW, "secret").measure(SIZES)
    cards = [CardMetrics("nvidia.com/gpu", 0, 10, 0), CardMetrics("nvidia.com/gpu", 1, 90, 2048)]
    assert [(one.name, list(one.cards)) for one in found] == [("a", cards), ("b", [])]
    assert server.tokens == {"Bearer secret"}


def test_other_source_measures_while_prometheus_is_silent() -> None:
    source = WithFallback(Measured(BackendError("no answer"), FOUND), Measured([]))
    assert [source.measure(SIZES), source.measure(SIZES)] == [[], FOUND]


@pytest.mark.parametrize("address", ["169.254.169.254", "::ffff:169.254.169.254", "fe80::1%eth0"])
def test_name_that_resolves_to_a_metadata_service_is_refused(
    server: MetricsServer, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    """The configuration has a name; at the connection it has this address."""
    monkeypatch.setattr(prometheus.socket.socket, "getpeername", lambda _self: (address, 80), raising=False)
    with pytest.raises(BackendError, match="not used"):
        Prometheus(PrometheusConfig(address=server.url), lambda: NOW).require_answer()
    assert server.requests == []
