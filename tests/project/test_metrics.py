"""What operators read with Prometheus: figures that are those of the rows, told to nobody else, at a bounded cost."""

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
from tests.simulation.conftest import POLICY, Found, found, settle, spec, submit
from tests.support.websocket import Socket

from hekla.apps.accounts.access import ROLES
from hekla.apps.clusters import leases
from hekla.apps.clusters import services as clusters
from hekla.apps.clusters.models import NodeFacts
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
from hekla.lib import clock
from hekla.lib.caching import CachedValue
from hekla.lib.checkout import CHECKOUT
from hekla.live.consumers import PageConsumer
from hekla.live.renderings import RenderQueues
from hekla.live.subscriptions import LiveQuery, SubscriptionKey
from hekla.pages.metrics import rows as row_figures
from hekla.pages.metrics import tasks
from hekla.pages.metrics.rows import rows
from hekla.scheduling import occupancy

__all__ = ["found"]
TOKEN = "for-prometheus"
MOST_QUERIES = 12
DASHBOARD = CHECKOUT / "deploy" / "grafana" / "hekla.json"
RULES = CHECKOUT / "deploy" / "prometheus" / "hekla.rules.yml"
NAME = re.compile(r"\bhekla_[a-z0-9_]+")


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
    """What one scrape told."""

    def __init__(self, text: str) -> None:
        self.families = list(text_string_to_metric_families(text))
        self.samples = [sample for family in self.families for sample in family.samples]

    def value(self, name: str, **labels: str) -> float | None:
        """Of the one sample that has these labels and no others."""
        return next((one.value for one in self.samples if (one.name, one.labels) == (name, labels)), None)

    def by(self, label: str, name: str, **labels: str) -> dict[str, float]:
        """Values that are not zero, by a label, where the others are as they are given."""
        told = ((one.labels[label], one) for one in self.samples if one.name == name)
        return {key: one.value for key, one in told if one.value and labels.items() <= one.labels.items()}


def ask(**headers: str) -> Any:
    return Client().get(reverse("metrics"), headers=headers)


def scrape() -> Scrape:
    rows.forget()
    answer = ask(authorization=f"Bearer {TOKEN}")
    assert answer.status_code == 200
    return Scrape(answer.content.decode())


# Who is told.


@pytest.mark.django_db
def test_there_is_nothing_unless_a_token_is_set(settings: Any) -> None:
    settings.METRICS_TOKEN = ""
    for header in ("", "Bearer ", "Bearer x"):
        assert ask(authorization=header).status_code == 404


@pytest.mark.django_db
@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Bearer wrong", f"Basic {TOKEN}", TOKEN, "Bearer törn"])
def test_who_lacks_the_token_is_asked_for_it_and_told_nothing(header: str) -> None:
    answer = ask(authorization=header)
    assert (answer.status_code, answer.headers["WWW-Authenticate"], answer.content) == (401, "Bearer", b"")


@pytest.mark.django_db
def test_who_has_the_token_is_told_in_the_format_of_prometheus() -> None:
    answer = ask(authorization=f"bearer {TOKEN}")
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert Scrape(answer.content.decode()).value("hekla_database_up") == 1


def test_a_session_opens_it_for_nobody(db: None) -> None:
    world = make_world()
    for role in ROLES:
        client = Client()
        if (user := world.roles[role]) is not None:
            client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
        assert client.get(reverse("metrics")).status_code == 401, role


# What the rows say.


def test_jobs_are_told_by_phase_cluster_and_queue(people: People) -> None:
    queues.create(cluster=people.cluster, name="other", actor=PLATFORM, now=clock.now())
    people.submit("one"), people.submit("two"), people.submit("three", queue="other")
    Job.objects.filter(name="two").update(phase="running")
    Job.objects.filter(pk=people.submit("gone").pk).update(deleted_at=clock.now())
    told = scrape()
    assert told.by("phase", "hekla_jobs", cluster="sim") == {"pending": 2, "running": 1}
    assert told.by("phase", "hekla_queue_jobs", queue="default") == {"pending": 1, "running": 1}
    assert told.by("queue", "hekla_queue_waiting_jobs") == {"default": 1, "other": 1}
    assert told.value("hekla_jobs", cluster="sim", phase="failed") == 0


def test_of_very_many_queues_the_first_by_name_are_told_and_all_are_in_the_sums(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_figures, "_MOST_QUEUES", 2)
    for name in ("more", "another"):
        queues.create(cluster=people.cluster, name=name, actor=PLATFORM, now=clock.now())
        people.submit(f"in-{name}", queue=name)
    told = scrape()
    assert told.by("queue", "hekla_queue_waiting_jobs") == {"another": 1}
    assert told.by("queue", "hekla_queue_capability_cpu_cores") == {"another": 4, "default": 4}
    assert told.by("phase", "hekla_jobs", cluster="sim") == {"pending": 2}


def test_nodes_are_told_by_what_they_are(people: People) -> None:
    room = {"cpu": "500m", "memory": "1Gi", "nvidia.com/gpu": "2"}
    reported = [NodeFacts(name, room, {}, is_ready=name == "n2") for name in ("n2", "n3", "n4")]
    clusters.observe_nodes(people.cluster, reported, now=clock.now())
    clusters.cordon(people.cluster.nodes.get(name="n4"), cordoned=True, actor=PLATFORM, now=clock.now())
    told = scrape()
    assert told.by("state", "hekla_nodes", cluster="sim") == {"ready": 2, "not_ready": 1, "cordoned": 1}
    assert told.value("hekla_cluster_allocatable_cpu_cores", cluster="sim") == 5.5
    assert told.value("hekla_cluster_allocatable_memory_bytes", cluster="sim") == 11 * 2**30
    assert told.by("resource", "hekla_cluster_allocatable_devices") == {"nvidia.com/gpu": 6}
    assert told.value("hekla_cluster_info", cluster="sim", kind="simulated") == 1


def test_what_pods_hold_and_what_queues_deserve_is_told(found: Found) -> None:
    world = found({"nvidia.com/gpu": "2"}, {})
    Queue.objects.update(capability={"cpu": "6"})
    submit(world, spec("runs", 2, cpu="1500m", resources={"memory": "1Gi", "nvidia.com/gpu": "1"}))
    settle(world)
    told = scrape()
    cluster = {"cluster": "simulated"}
    queue = {**cluster, "queue": "default"}
    for name, labels in (("cluster", cluster), ("queue", queue)):
        assert told.value(f"hekla_{name}_allocated_cpu_cores", **labels) == 3
        assert told.value(f"hekla_{name}_allocated_memory_bytes", **labels) == 2 * 2**30
        assert told.value(f"hekla_{name}_allocated_devices", **labels, resource="nvidia.com/gpu") == 2
    assert told.value("hekla_queue_capability_cpu_cores", **queue) == 6
    assert told.value("hekla_queue_capability_memory_bytes", **queue) == 16 * 2**30
    assert sum(told.by("phase", "hekla_pods", cluster="simulated").values()) == 2


def test_how_long_the_first_waits_is_told_as_the_page_of_the_job_tells_it(found: Found) -> None:
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
    told = scrape().by("queue", "hekla_queue_oldest_wait_seconds")
    assert told == {"default": pytest.approx(3600, abs=60)}


def test_the_log_tells_its_last_number_and_what_it_lost(people: People) -> None:
    people.submit("one")
    last = LoggedEvent.objects.order_by("-id").first()
    told = scrape()
    assert told.value("hekla_event_log_last_number") == last.pk
    assert told.value("hekla_event_log_lost_numbers") == 0
    LoggedEvent.objects.order_by("id").first().delete()
    assert scrape().value("hekla_event_log_lost_numbers") == 1


def test_the_lease_of_a_cluster_tells_whether_a_controller_turns_it(people: People) -> None:
    type(people.cluster).objects.update(created_at=clock.now() - timedelta(hours=1))
    never = scrape()
    assert never.value("hekla_controller_lease_held", cluster="sim") == 0
    assert never.value("hekla_controller_lease_age_seconds", cluster="sim") == pytest.approx(3600, abs=60)
    leases.take(people.cluster, "a", now=clock.now())
    held = scrape()
    assert held.value("hekla_controller_lease_held", cluster="sim") == 1
    assert 0 <= held.value("hekla_controller_lease_age_seconds", cluster="sim") < 4
    leases.release("a", now=clock.now() - timedelta(minutes=2))
    assert scrape().value("hekla_controller_lease_held", cluster="sim") == 0
    assert scrape().value("hekla_controller_lease_age_seconds", cluster="sim") > 120


@pytest.mark.django_db
def test_a_database_that_is_away_is_told_and_the_process_tells_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    def away() -> None:
        raise OperationalError("gone")

    monkeypatch.setattr(occupancy, "now", away)
    told = scrape()
    assert told.value("hekla_database_up") == 0
    assert {one.name for one in told.samples} > {"hekla_live_open_sockets", "process_resident_memory_bytes"}


# What it costs.


def test_a_scrape_asks_the_same_however_many_rows_there_are(people: People) -> None:
    def asked() -> int:
        occupancy.forget()
        rows.forget()
        with CaptureQueriesContext(
            connection,
        ) as queries:
            ask(authorization=f"Bearer {TOKEN}")
        return len(queries)

    few = asked()
    for at in range(3):
        cluster = clusters.create(name=f"c{at}", kind="simulated", config={}, actor=PLATFORM, now=clock.now())
        leases.take(cluster, "a", now=clock.now())
        for number in range(3):
            queues.create(cluster=cluster, name=f"q{at}-{number}", actor=PLATFORM, now=clock.now())
            job = people.submit(f"j{at}-{number}", queue=f"q{at}-{number}")
            one = {"job": job, "task": "main", "version": 1, "address": "127.0.0.1", "created_at": clock.now()}
            Pod.objects.bulk_create(Pod(**one, index=i, attempt=1, slot=i, phase="running", node="n") for i in range(9))
    assert asked() == few <= MOST_QUERIES
    people.submit("more")
    rows.forget()
    with CaptureQueriesContext(connection) as queries:
        ask(authorization=f"Bearer {TOKEN}")
    assert len(queries) <= MOST_QUERIES


def test_who_asks_again_at_once_asks_the_database_nothing(people: People) -> None:
    scrape()
    with CaptureQueriesContext(connection) as queries:
        ask(authorization=f"Bearer {TOKEN}")
    assert len(queries) == 0


def test_who_asks_while_an_answer_is_looked_for_gets_that_answer() -> None:
    asked, go_on = [], threading.Event()

    def find() -> int:
        asked.append(1)
        go_on.wait(10)
        return len(asked)

    kept, answers = CachedValue(find, 60), []
    threads = [threading.Thread(target=lambda: answers.append(kept())) for _ in range(5)]
    for thread in threads:
        thread.start()
    go_on.set()
    for thread in threads:
        thread.join(10)
    assert answers == [1] * 5
    kept.clear()
    assert kept() == 2


# What processes measure.


def requests_of(**labels: str) -> float:
    return REGISTRY.get_sample_value("hekla_http_requests_total", labels) or 0


@pytest.mark.django_db
def test_requests_are_counted_by_the_name_of_their_address() -> None:
    labels = {"route": "health", "method": "GET", "status": "2xx"}
    before = requests_of(**labels)
    Client().get(reverse("health"))
    assert requests_of(**labels) == before + 1
    timed = {"route": "health", "method": "GET"}
    assert REGISTRY.get_sample_value("hekla_http_request_duration_seconds_count", timed) >= before + 1


@pytest.mark.django_db
def test_nobody_adds_to_the_labels_by_what_they_ask_for() -> None:
    def told() -> set[str]:
        metrics = [one for one in REGISTRY.collect() if one.name.startswith("hekla_http_")]
        return {str(sorted(sample.labels.items())) for metric in metrics for sample in metric.samples}

    def strange(word: str) -> None:
        Client().get(f"/{word}/")
        Client().get(f"/jobs/{word}/")
        Client().generic(word.upper(), reverse("health"))

    strange("first")
    before = told()
    strange("second")
    assert told() == before
    assert not any("first" in labels.lower() for labels in before)


def test_turns_cycles_binds_and_shares_are_measured_by_who_decides(
    found: Found, monkeypatch: pytest.MonkeyPatch
) -> None:
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


async def test_a_socket_is_counted_for_as_long_as_it_is_open() -> None:
    def opened() -> float:
        return REGISTRY.get_sample_value("hekla_live_open_sockets") or 0

    before = opened()
    socket = Socket(PageConsumer.as_asgi(), "/ws/live/", AnonymousUser())
    await socket.open()
    assert opened() == before + 1
    await socket.leave()
    assert opened() == before


def test_renderings_are_measured_by_what_they_show() -> None:
    def made() -> float:
        return REGISTRY.get_sample_value("hekla_live_rendering_cpu_seconds_count", {"view": "home"}) or 0

    before = made()
    RenderQueues().record(SubscriptionKey(LiveQuery.parse({"view": "home"}, "en"), 0, None, frozenset()), 0.01)
    assert made() == before + 1


def test_tasks_are_measured_by_their_name() -> None:
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
    with network.socket() as door:
        door.bind(("127.0.0.1", 0))
        return door.getsockname()[1]


def test_a_worker_tells_its_figures_where_it_is_asked_to(settings: Any, caplog: pytest.LogCaptureFixture) -> None:
    settings.METRICS_PORT = 0
    tasks.serve()
    settings.METRICS_HOST, settings.METRICS_PORT = "127.0.0.1", free_port()
    tasks.serve()
    with urllib.request.urlopen(f"http://127.0.0.1:{settings.METRICS_PORT}/metrics", timeout=10) as answer:
        told = Scrape(answer.read().decode())
    assert "hekla_tasks" in {family.name for family in told.families}
    assert "hekla_database_up" not in {family.name for family in told.families}
    tasks.serve()
    assert "cannot tell figures at 127.0.0.1" in caplog.text


def test_without_being_asked_no_worker_listens() -> None:
    assert configured.METRICS_PORT == 0
    assert configured.METRICS_HOST == "127.0.0.1"


def test_the_workers_of_one_machine_tell_their_figures_by_ports_beside_each_other() -> None:
    assert _next_door({"HEKLA_METRICS_PORT": "9100"}) == {"HEKLA_METRICS_PORT": "9101"}
    assert _next_door({"A": "b"}) == {"A": "b"}


# What the dashboard and the alerts ask for.


def expressions() -> dict[str, str]:
    """All of both files, by where they stand."""
    panels = json.loads(DASHBOARD.read_text())["panels"]
    asked = {
        f"{panel['title']}: {at}": target["expr"]
        for panel in panels
        for at, target in enumerate(panel.get("targets", ()))
    }
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return asked | {rule["alert"]: rule["expr"] for group in groups for rule in group["rules"]}


def test_what_the_dashboard_and_the_alerts_ask_for_is_told(people: People) -> None:
    scraped = {name for family in scrape().families for name in _names(family)}
    measured = {name for metric in REGISTRY.collect() for name in _names(metric)}
    asked = {where: set(NAME.findall(text)) for where, text in expressions().items()}
    assert len(asked) > 20
    assert {where: names - scraped - measured for where, names in asked.items() if names - scraped - measured} == {}
    assert all(names for names in asked.values())


def _names(family: Any) -> set[str]:
    """Of the samples that a family has, or would have."""
    ends = {"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"]}.get(family.type, [""])
    return {family.name.removesuffix("_total") + end for end in ends}


def test_the_dashboard_has_a_row_for_each_part() -> None:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    titles = [panel["title"] for panel in panels if panel["type"] == "row"]
    assert titles == ["Capacity and use", "Queues and waiting", "Jobs", "Controller", "Web"]
    assert len({panel["id"] for panel in panels}) == len(panels)


def test_each_alert_says_what_is_wrong_and_what_to_do() -> None:
    groups = yaml.safe_load(RULES.read_text())["groups"]
    for rule in (rule for group in groups for rule in group["rules"]):
        assert set(rule["annotations"]) == {"summary", "description"}, rule["alert"]
        assert rule["labels"]["severity"] in {"critical", "warning"}, rule["alert"]
