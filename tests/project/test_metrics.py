"""Metrics for Prometheus: they equal the rows, require a token, and have a bounded cost."""

import json
import re
import socket as network
import threading
import urllib.request
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
import yaml
from django.conf import settings as configured
from django.contrib.auth.models import AnonymousUser
from django.db import OperationalError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from prometheus_client import REGISTRY
from prometheus_client.parser import text_string_to_metric_families
from tests.apps.access_world import make_world
from tests.apps.conftest import People, make_people
from tests.simulation.conftest import POLICY, WorldFactory, found, settle, spec, submit
from tests.support.websocket import Socket

from hekla.apps.accounts.access import ROLES
from hekla.apps.clusters import leases
from hekla.apps.clusters import services as clusters
from hekla.apps.clusters.models import Lease, NodeFacts
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.queues import services as queues
from hekla.apps.queues.models import Queue
from hekla.controller import metrics as instruments
from hekla.domain.policies import LifecycleAction
from hekla.launcher.up.roles import _next_door
from hekla.lib import clock, exposition
from hekla.lib.caching import CachedValue
from hekla.lib.checkout import CHECKOUT
from hekla.live.consumers import PageConsumer
from hekla.live.renderings import RenderQueues
from hekla.live.subscriptions import LiveQuery, SubscriptionKey
from hekla.pages.metrics import boards, requests, tasks
from hekla.pages.metrics import rows as row_figures
from hekla.pages.metrics.rows import rows
from hekla.scheduling import occupancy

__all__ = ["found"]
TOKEN = "for-prometheus"
MAX_QUERIES = 12
_BOUNDED = ("cluster", "queue", "resource")
DASHBOARD = CHECKOUT / "deploy" / "grafana" / "hekla.json"
RULES = CHECKOUT / "deploy" / "prometheus" / "hekla.rules.yml"
NAME = re.compile(r"\bhekla_[a-z0-9_]+")


@pytest.fixture(scope="module", autouse=True)
def forget_earlier_requests() -> None:
    """Earlier tests requested every route with every verb: to read their figures takes a second a scrape."""
    for figures in (requests.REQUESTS, requests.REQUEST_SECONDS):
        figures.clear()


@pytest.fixture(autouse=True)
def token(settings: Any) -> Iterator[None]:
    settings.METRICS_TOKEN = TOKEN
    rows.forget()
    yield
    rows.forget()


@pytest.fixture
def people(db: None) -> People:
    return make_people()


class Scrape:
    """The response to one scrape."""

    def __init__(self, text: str) -> None:
        self.families = list(text_string_to_metric_families(text))
        self.samples = [sample for family in self.families for sample in family.samples]

    def value(self, name: str, **labels: str) -> float | None:
        """The value of the sample with exactly these labels."""
        return next((one.value for one in self.samples if (one.name, one.labels) == (name, labels)), None)

    def by(self, label: str, name: str, **labels: str) -> dict[str, float]:
        """The values other than zero of the samples with these labels, by one more label."""
        samples = ((one.labels[label], one) for one in self.samples if one.name == name)
        return {key: one.value for key, one in samples if one.value and labels.items() <= one.labels.items()}


def get_metrics(**headers: str) -> Any:
    return Client().get(reverse("metrics"), headers=headers)


def scrape() -> Scrape:
    rows.forget()
    response = get_metrics(authorization=f"Bearer {TOKEN}")
    assert response.status_code == 200
    return Scrape(response.content.decode())


# Access.


@pytest.mark.django_db
def test_metrics_are_not_found_without_a_configured_token(settings: Any) -> None:
    settings.METRICS_TOKEN = ""
    for header in ("", "Bearer ", "Bearer x"):
        assert get_metrics(authorization=header).status_code == 404


@pytest.mark.django_db
@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Bearer wrong", f"Basic {TOKEN}", TOKEN, "Bearer törn"])
def test_request_without_the_token_is_refused(header: str) -> None:
    response = get_metrics(authorization=header)
    assert (response.status_code, response.headers["WWW-Authenticate"], response.content) == (401, "Bearer", b"")


@pytest.mark.django_db
def test_request_with_the_token_gets_the_prometheus_format() -> None:
    response = get_metrics(authorization=f"bearer {TOKEN}")
    assert response.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert Scrape(response.content.decode()).value("hekla_database_up") == 1


def test_login_session_does_not_give_access(db: None) -> None:
    world = make_world()
    for role in ROLES:
        client = Client()
        if (user := world.roles[role]) is not None:
            client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
        assert client.get(reverse("metrics")).status_code == 401, role


# Values from rows.


def test_jobs_by_phase_cluster_and_queue(people: People) -> None:
    queues.create(cluster=people.cluster, name="other", actor=PLATFORM, now=clock.now())
    people.submit("one"), people.submit("two"), people.submit("three", queue="other")
    Job.objects.filter(name="two").update(phase="running")
    Job.objects.filter(pk=people.submit("gone").pk).update(deleted_at=clock.now())
    scraped = scrape()
    assert scraped.by("phase", "hekla_jobs", cluster="sim") == {"pending": 2, "running": 1}
    assert scraped.by("phase", "hekla_queue_jobs", queue="default") == {"pending": 1, "running": 1}
    assert scraped.by("queue", "hekla_queue_waiting_jobs") == {"default": 1, "other": 1}
    assert scraped.value("hekla_jobs", cluster="sim", phase="failed") == 0


def test_first_queues_by_name_are_reported_and_sums_have_all_queues(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_figures, "_MOST_QUEUES", 2)
    for name in ("more", "another"):
        queues.create(cluster=people.cluster, name=name, actor=PLATFORM, now=clock.now())
        people.submit(f"in-{name}", queue=name)
    scraped = scrape()
    assert scraped.by("queue", "hekla_queue_waiting_jobs") == {"another": 1}
    assert scraped.by("queue", "hekla_queue_capability_cpu_cores") == {"another": 4, "default": 4}
    assert scraped.by("phase", "hekla_jobs", cluster="sim") == {"pending": 2}


def test_nodes_by_state(people: People) -> None:
    room = {"cpu": "500m", "memory": "1Gi", "nvidia.com/gpu": "2"}
    reported = [NodeFacts(name, room, {}, is_ready=name == "n2") for name in ("n2", "n3", "n4")]
    clusters.observe_nodes(people.cluster, reported, now=clock.now())
    clusters.cordon(people.cluster.nodes.get(name="n4"), cordoned=True, actor=PLATFORM, now=clock.now())
    scraped = scrape()
    assert scraped.by("state", "hekla_nodes", cluster="sim") == {"ready": 2, "not_ready": 1, "cordoned": 1}
    assert scraped.value("hekla_cluster_allocatable_cpu_cores", cluster="sim") == 5.5
    assert scraped.value("hekla_cluster_allocatable_memory_bytes", cluster="sim") == 11 * 2**30
    assert scraped.by("resource", "hekla_cluster_allocatable_devices") == {"nvidia.com/gpu": 6}
    assert scraped.value("hekla_cluster_info", cluster="sim", kind="simulated") == 1


def test_allocation_and_capability_of_clusters_and_queues(found: WorldFactory) -> None:
    world = found({"nvidia.com/gpu": "2"}, {})
    Queue.objects.update(capability={"cpu": "6"})
    submit(world, spec("runs", 2, cpu="1500m", resources={"memory": "1Gi", "nvidia.com/gpu": "1"}))
    settle(world)
    scraped = scrape()
    cluster = {"cluster": "simulated"}
    queue = {**cluster, "queue": "default"}
    for name, labels in (("cluster", cluster), ("queue", queue)):
        assert scraped.value(f"hekla_{name}_allocated_cpu_cores", **labels) == 3
        assert scraped.value(f"hekla_{name}_allocated_memory_bytes", **labels) == 2 * 2**30
        assert scraped.value(f"hekla_{name}_allocated_devices", **labels, resource="nvidia.com/gpu") == 2
    assert scraped.value("hekla_queue_capability_cpu_cores", **queue) == 6
    assert scraped.value("hekla_queue_capability_memory_bytes", **queue) == 16 * 2**30
    assert sum(scraped.by("phase", "hekla_pods", cluster="simulated").values()) == 2


def test_oldest_wait_equals_the_one_of_the_job_page(found: WorldFactory) -> None:
    world = found({})
    runs, began_late, again = (submit(world, spec(name, 1, cpu="4")) for name in ("runs", "late", "again"))
    settle(world)
    for command in (LifecycleAction.ABORT_JOB, LifecycleAction.RESUME_JOB):
        services.command(Job.objects.get(pk=again.pk), command, user=world.alice, now=clock.now())
        settle(world)
    long_ago = clock.now() - timedelta(days=3)
    Job.objects.filter(pk__in=[runs.pk, again.pk]).update(submitted_at=long_ago)
    Job.objects.filter(pk=began_late.pk).update(submitted_at=clock.now() - timedelta(hours=1))
    waiting = [Job.objects.get(pk=job.pk) for job in (began_late, again)]
    assert {job.phase for job in waiting} == {"pending"}
    [oldest] = jobs.oldest_waits().values()
    assert oldest == min(jobs.waiting_since(waiting).values())
    scraped = scrape().by("queue", "hekla_queue_oldest_wait_seconds")
    assert scraped == {"default": pytest.approx(3600, abs=60)}


def test_event_log_reports_its_last_and_lost_numbers(people: People) -> None:
    people.submit("one")
    last = LoggedEvent.objects.order_by("-id").first()
    scraped = scrape()
    assert scraped.value("hekla_event_log_last_number") == last.pk
    assert scraped.value("hekla_event_log_lost_numbers") == 0
    LoggedEvent.objects.order_by("id").first().delete()
    assert scrape().value("hekla_event_log_lost_numbers") == 1


def test_lease_of_a_cluster_is_reported(people: People) -> None:
    type(people.cluster).objects.update(created_at=clock.now() - timedelta(hours=1))
    never = scrape()
    assert never.value("hekla_controller_lease_held", cluster="sim") == 0
    assert never.value("hekla_controller_lease_age_seconds", cluster="sim") == pytest.approx(3600, abs=60)
    leases.take(people.cluster, "a", now=clock.now())
    held = scrape()
    assert held.value("hekla_controller_lease_held", cluster="sim") == 1
    assert 0 <= held.value("hekla_controller_lease_age_seconds", cluster="sim") < 4
    leases.release("a")
    Lease.objects.update(expires_at=clock.now() - timedelta(minutes=2))
    assert scrape().value("hekla_controller_lease_held", cluster="sim") == 0
    assert scrape().value("hekla_controller_lease_age_seconds", cluster="sim") > 120


@pytest.mark.django_db
def test_missing_database_is_reported_with_the_other_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    def away() -> None:
        raise OperationalError("gone")

    monkeypatch.setattr(occupancy, "now", away)
    scraped = scrape()
    assert scraped.value("hekla_database_up") == 0
    assert {one.name for one in scraped.samples} > {"hekla_live_open_sockets", "process_resident_memory_bytes"}


# Cost.


def test_number_of_queries_does_not_depend_on_rows(people: People) -> None:
    def count_queries() -> int:
        occupancy.forget()
        rows.forget()
        with CaptureQueriesContext(
            connection,
        ) as queries:
            get_metrics(authorization=f"Bearer {TOKEN}")
        return len(queries)

    few = count_queries()
    for at in range(3):
        cluster = clusters.create(name=f"c{at}", kind="simulated", config={}, actor=PLATFORM, now=clock.now())
        leases.take(cluster, "a", now=clock.now())
        for number in range(3):
            queues.create(cluster=cluster, name=f"q{at}-{number}", actor=PLATFORM, now=clock.now())
            job = people.submit(f"j{at}-{number}", queue=f"q{at}-{number}")
            one = {"job": job, "task": "main", "version": 1, "address": "127.0.0.1", "created_at": clock.now()}
            Pod.objects.bulk_create(Pod(**one, index=i, attempt=1, slot=i, phase="running", node="n") for i in range(9))
    assert count_queries() == few <= MAX_QUERIES
    people.submit("more")
    rows.forget()
    with CaptureQueriesContext(connection) as queries:
        get_metrics(authorization=f"Bearer {TOKEN}")
    assert len(queries) <= MAX_QUERIES


def test_second_scrape_is_answered_from_the_cache(people: People) -> None:
    scrape()
    with CaptureQueriesContext(connection) as queries:
        get_metrics(authorization=f"Bearer {TOKEN}")
    assert len(queries) == 0


def test_concurrent_reads_of_a_cached_value_share_one_computation() -> None:
    calls, release = [], threading.Event()

    def find() -> int:
        calls.append(1)
        release.wait(10)
        return len(calls)

    cached, answers = CachedValue(find, 60), []
    threads = [threading.Thread(target=lambda: answers.append(cached())) for _ in range(5)]
    for thread in threads:
        thread.start()
    release.set()
    for thread in threads:
        thread.join(10)
    assert answers == [1] * 5
    cached.clear()
    assert cached() == 2


# Measurements of processes.


def requests_of(**labels: str) -> float:
    return REGISTRY.get_sample_value("hekla_http_requests_total", labels) or 0


@pytest.mark.django_db
def test_requests_are_counted_by_route() -> None:
    labels = {"route": "accounts:sign_in", "method": "GET", "status": "2xx"}
    before = requests_of(**labels)
    Client().get(reverse("accounts:sign_in"))
    assert requests_of(**labels) == before + 1
    timed = {"route": "accounts:sign_in", "method": "GET"}
    assert REGISTRY.get_sample_value("hekla_http_request_duration_seconds_count", timed) >= before + 1


@pytest.mark.django_db
def test_unknown_paths_and_methods_add_no_labels() -> None:
    def label_sets() -> set[str]:
        metrics = [one for one in REGISTRY.collect() if one.name.startswith("hekla_http_")]
        return {str(sorted(sample.labels.items())) for metric in metrics for sample in metric.samples}

    def send_unknown(word: str) -> None:
        Client().get(f"/{word}/")
        Client().get(f"/jobs/{word}/")
        Client().generic(word.upper(), reverse("accounts:sign_in"))

    send_unknown("first")
    before = label_sets()
    send_unknown("second")
    assert label_sets() == before
    assert not any("first" in labels.lower() for labels in before)


def test_reconciles_cycles_binds_and_shares_are_measured(found: WorldFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instruments, "_LOOK_EVERY_SECONDS", 0.0)

    def value(name: str, **labels: str) -> float:
        return REGISTRY.get_sample_value(name, {"cluster": "simulated", **labels}) or 0

    names = ("hekla_controller_reconcile_duration_seconds_count", "hekla_engine_cycle_duration_seconds_count")
    before = {name: value(name) for name in (*names, "hekla_engine_binds_total")}
    world = found({}, {}, policy=POLICY)
    submit(world, spec("runs", 2))
    settle(world)
    assert all(value(name) > before[name] for name in names)
    assert value("hekla_engine_binds_total") == before["hekla_engine_binds_total"] + 2
    assert value("hekla_queue_deserved_cpu_cores", queue="default") == 2


async def test_socket_is_counted_while_it_is_open() -> None:
    def open_sockets() -> float:
        return REGISTRY.get_sample_value("hekla_live_open_sockets") or 0

    before = open_sockets()
    socket = Socket(PageConsumer.as_asgi(), "/ws/live/", AnonymousUser())
    await socket.open()
    assert open_sockets() == before + 1
    await socket.leave()
    assert open_sockets() == before


def test_renderings_are_measured_by_view() -> None:
    def count() -> float:
        return REGISTRY.get_sample_value("hekla_live_rendering_cpu_seconds_count", {"view": "home"}) or 0

    before = count()
    RenderQueues().record(SubscriptionKey(LiveQuery.parse({"view": "home"}), 0, None, frozenset()), 0.01)
    assert count() == before + 1


def test_tasks_are_measured_by_name() -> None:
    class Done:
        name = "hekla.test"

    def value(name: str, **labels: str) -> float:
        return REGISTRY.get_sample_value(name, {"task": "hekla.test", **labels}) or 0

    before = value("hekla_tasks_total", state="failure")
    tasks.begin(task_id="1")
    tasks.end(task_id="1", task=Done, state="FAILURE")
    assert value("hekla_tasks_total", state="failure") == before + 1
    assert value("hekla_task_duration_seconds_count") >= 1
    assert not tasks._began


def free_port() -> int:
    with network.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_worker_serves_metrics_at_the_configured_port(settings: Any, caplog: pytest.LogCaptureFixture) -> None:
    settings.METRICS_PORT = 0
    tasks.serve()
    settings.METRICS_HOST, settings.METRICS_PORT = "127.0.0.1", free_port()
    tasks.serve()
    with urllib.request.urlopen(f"http://127.0.0.1:{settings.METRICS_PORT}/metrics", timeout=10) as response:
        scraped = Scrape(response.read().decode())
    assert "hekla_tasks" in {family.name for family in scraped.families}
    assert "hekla_database_up" not in {family.name for family in scraped.families}
    tasks.serve()
    assert "cannot serve metrics at 127.0.0.1" in caplog.text


def test_worker_does_not_listen_by_default() -> None:
    assert configured.METRICS_PORT == 0
    assert configured.METRICS_HOST == "127.0.0.1"


def test_workers_of_one_machine_have_consecutive_ports() -> None:
    assert _next_door({"HEKLA_METRICS_PORT": "9100"}) == {"HEKLA_METRICS_PORT": "9101"}
    assert _next_door({"A": "b"}) == {"A": "b"}


# The dashboard and the alerts.


def expressions() -> dict[str, str]:
    """The expressions of both files, by panel or alert."""
    panels = json.loads(DASHBOARD.read_text())["panels"]
    queries = {
        f"{panel['title']}: {at}": target["expr"]
        for panel in panels
        for at, target in enumerate(panel.get("targets", ()))
    }
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return queries | {rule["alert"]: rule["expr"] for group in groups for rule in group["rules"]}


def test_metrics_of_the_dashboard_and_alerts_exist(people: People) -> None:
    scraped = {name for family in scrape().families for name in _names(family)}
    measured = {name for metric in REGISTRY.collect() for name in _names(metric)}
    used = {where: set(NAME.findall(text)) for where, text in expressions().items()}
    assert len(used) > 20
    assert {where: names - scraped - measured for where, names in used.items() if names - scraped - measured} == {}
    assert all(names for names in used.values())


def _names(family: Any) -> set[str]:
    """The names of the samples that a family has or can have."""
    ends = {"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"]}.get(family.type, [""])
    return {family.name.removesuffix("_total") + end for end in ends}


def test_dashboard_has_a_row_for_each_part() -> None:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    titles = [panel["title"] for panel in panels if panel["type"] == "row"]
    assert titles == ["Capacity and use", "Queues and waiting", "Jobs", "Controller", "Web"]
    assert len({panel["id"] for panel in panels}) == len(panels)


def test_dashboard_is_the_generated_one_and_shows_each_gauge() -> None:
    """Otherwise run `manage.py grafana_boards`."""
    assert DASHBOARD.read_text() == boards.dashboard()
    for family in row_figures.FAMILIES:
        assert family.name in DASHBOARD.read_text(), family.name


def test_labels_are_bounded(people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many clusters, queues and kinds of devices there are; the sums of clusters count all queues."""
    monkeypatch.setattr(row_figures, "_MOST_CLUSTERS", 2)
    monkeypatch.setattr(row_figures, "_MOST_QUEUES", 2)
    monkeypatch.setattr(exposition, "MOST_DEVICES", 3)
    now = clock.now()
    for name in ("s1", "s2", "s3"):
        clusters.create(name=name, kind="simulated", config={"nodes": []}, actor=PLATFORM, now=now)
        queues.create(cluster=people.cluster, name=f"queue-{name}", actor=PLATFORM, now=now)
    devices = {f"example.com/device-{number}": "1" for number in range(9)}
    clusters.observe_nodes(people.cluster, [NodeFacts("odd", {"cpu": "1", "memory": "1Gi", **devices}, {})], now=now)
    people.submit("one"), people.submit("two", queue="queue-s3")
    scraped = scrape()
    values = {name: {one.labels[name] for one in scraped.samples if name in one.labels} for name in _BOUNDED}
    assert len(values["cluster"] & {"sim", "s1", "s2", "s3"}) == 2  # others are those of tests before, of this process
    assert len(values["queue"]) == 2
    assert len(values["resource"]) <= 3 * 2
    labels = {label for one in scraped.samples if one.name.startswith("hekla_") for label in one.labels}
    assert not labels & {"tenant", "node", "job", "user", "person", "pod"}
    assert scraped.by("phase", "hekla_jobs", cluster="sim") == {"pending": 2}


def test_each_alert_has_a_summary_and_a_description() -> None:
    groups = yaml.safe_load(RULES.read_text())["groups"]
    for rule in (rule for group in groups for rule in group["rules"]):
        assert set(rule["annotations"]) == {"summary", "description"}, rule["alert"]
        assert rule["labels"]["severity"] in {"critical", "warning"}, rule["alert"]
