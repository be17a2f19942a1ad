"""The overview of operations, its arrangement, the sessions, and dashboards that refresh themselves."""

import csv
import html
import re
from datetime import timedelta
from typing import Any

from django.http import QueryDict
from django.urls import reverse
from tests.apps.shared_people import db, people, shared_people
from tests.apps.test_job_measures import counted

from hekla.apps.clusters.models import Cluster, Node
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.idleness.models import SessionMinute
from hekla.apps.jobs.models import Pod
from hekla.apps.measures import services
from hekla.apps.measures.levels import HOUR, floor
from hekla.apps.measures.models import GpuHolding
from hekla.apps.reports import html as html_report
from hekla.apps.reports import pdf
from hekla.apps.reports.composing import compose
from hekla.apps.workbench.models import ToolSession
from hekla.domain.reports import ReportSpan, ReportSpec
from hekla.lib import clock
from hekla.live import registry
from hekla.pages.operations.live import DASHBOARDS

__all__ = ["counted", "db", "people", "shared_people"]


def figures(as_: Any, user: Any, **query: str) -> Any:
    response = as_(user).get(reverse("api:v1:overview"), query)
    if response.status_code != 200:
        return response.status_code
    return {one["name"]: one["value"] for one in response.json()["figures"]}


def page(as_: Any, user: Any, name: str, **query: str) -> str:
    response = as_(user).get(reverse(f"operations:{name}"), query)
    assert response.status_code == 200
    return response.content.decode()


def test_overview_has_the_figures_of_the_dashboards(counted: Any, as_: Any) -> None:
    found = figures(as_, counted.ada)
    assert {name: found[name] for name in ("completed", "failed", "waiting", "starved", "alerts")} == {
        "completed": 1, "failed": 1, "waiting": 1, "starved": 0, "alerts": 0,
    }  # fmt: skip
    assert 60 <= found["wait_p50"] <= 72
    assert found["nodes_down"] == 0
    Node.objects.update(is_ready=False)
    assert figures(as_, counted.ada)["nodes_down"] == 1
    past = (clock.now() - timedelta(days=3)).isoformat()
    assert "waiting" not in figures(as_, counted.ada, until=past)
    assert figures(as_, counted.ada, cluster="none") == 404


def test_others_get_the_overview_of_their_tenants(counted: Any, as_: Any) -> None:
    found = figures(as_, counted.bob)
    assert found["failed"] == 1
    assert not {"held", "nodes_down"} & found.keys()
    assert figures(as_, counted.charlie)["failed"] == 0


def test_each_tile_leads_to_its_dashboard(counted: Any, as_: Any) -> None:
    text = page(as_, counted.ada, "overview", period="day")
    links = [html.unescape(one) for one in re.findall(r'class="stat-label"><a href="([^"]+)"', text)]
    assert len(links) == 11
    assert all(as_(counted.ada).get(one).status_code == 200 for one in links)
    rows = list(csv.DictReader(page(as_, counted.ada, "overview_file").splitlines()))
    assert {row["figure"]: row["value"] for row in rows}["failed"] == "1"


def test_a_person_arranges_their_overview(counted: Any, as_: Any) -> None:
    def order(user: Any) -> list[str]:
        return re.findall(r'id="figure-([a-z0-9_]+)"', page(as_, user, "overview"))

    usual = order(counted.ada)
    form = {"figure": ["alerts", "failed", "useful"], "visible": ["failed", "alerts"], "up": "failed"}
    response = as_(counted.ada).post(reverse("operations:arrange"), form)
    assert response.url.endswith("?arrange=up-failed#arrange")
    assert order(counted.ada) == ["failed", "alerts"]
    assert order(counted.bob) != ["failed", "alerts"]
    assert LoggedEvent.objects.filter(kind="OverviewArranged").count() == 1
    text = as_(counted.ada).get(response.url.partition("#")[0]).content.decode()
    assert re.search(r'value="failed"[^>]*data-focus-first', text)
    as_(counted.ada).post(reverse("operations:arrange"), {"reset": "yes"})
    assert order(counted.ada) == usual


def test_sessions_with_their_gpus(people: Any, as_: Any) -> None:
    """One person has two sessions in a pod with a GPU that nobody uses; outside of the tenant they do not exist."""
    Cluster.objects.filter(pk=people.cluster.pk).update(kind="local")
    now, job = clock.now(), people.submit("notebook")
    hour = timedelta(hours=1)
    pod = Pod.objects.create(
        job=job, task="main", index=0, attempt=1, version=1, slot=0, address="", created_at=now, phase="running"
    )
    facts = {"queue_id": job.queue_id, "tenant_id": job.tenant_id, "owner_id": job.owner_id, "kind": "training"}
    GpuHolding.objects.create(
        pod_id=pod.pk, resource="nvidia.com/gpu", cluster_id=job.cluster_id, job_id=job.pk, node="n1", gpus=2000,
        bound_at=now - hour, **facts,
    )  # fmt: skip
    for tool, used in (("jupyterlab", 5), ("tensorboard", 50)):
        one = ToolSession.objects.create(pod=pod, owner=people.alice, tool=tool, slug=tool, created_at=now - hour)
        SessionMinute.objects.create(session=one, at=now - timedelta(minutes=used), requests=3)

    def found(user: Any, **query: str) -> Any:
        response = as_(user).get(reverse("api:v1:session_use"), query)
        return response.json() if response.status_code == 200 else response.status_code

    report = found(people.bob)
    assert report["total"] == {"sessions": 2, "idle": 1, "gpus": 2.0, "unused_gpus": 2.0}
    assert [(one["tool"], one["is_idle"]) for one in report["sessions"]] == [
        ("tensorboard", True),
        ("jupyterlab", False),
    ]
    assert [(part["name"], part["sessions"]) for part in found(people.ada, by="person")["parts"]] == [("alice", 2)]
    assert found(people.ada, tool="jupyterlab")["total"]["idle"] == 0
    assert found(people.charlie)["total"]["sessions"] == 0
    assert found(people.charlie, tenant="lab") == 404
    text = page(as_, people.bob, "sessions", by="tenant")
    assert "TensorBoard" in text
    assert "?tenant=lab" in text
    assert "No open sessions" in page(as_, people.charlie, "sessions")
    rows = list(csv.DictReader(page(as_, people.bob, "sessions_file").splitlines()))
    assert [row["idle"] for row in rows] == ["yes", "no"]
    Cluster.objects.filter(pk=people.cluster.pk).update(kind="simulated")
    assert found(people.ada)["total"]["sessions"] == 0
    assert found(people.ada, cluster="sim")["is_simulated"]


def test_live_parts_are_those_of_the_page(counted: Any, as_: Any) -> None:
    """The same cards, without the frame. A past period has no live connection."""
    (view,) = registry.find("operations")
    for name in DASHBOARDS:
        text = page(as_, counted.ada, name)
        query = html.unescape(re.search(r'data-live-query="([^"]+)"', text)[1])  # type: ignore[index]
        params = QueryDict(query).dict()
        assert params["page"] == name
        assert view.topics(counted.ada, params)
        part = view.render(counted.ada, params)
        assert part.strip().startswith('<div id="dashboard"')
        cards = set(re.findall(r'<section[^>]*id="([^"]+)"', text))
        assert set(re.findall(r'<section[^>]*id="([^"]+)"', part)) == cards & set(re.findall(r'id="([^"]+)"', part))
        assert 'name="cluster"' not in part
    assert 'data-live-query=""' in page(as_, counted.ada, "waiting", until="2026-01-01T00:00:00Z")


def test_new_sums_reach_the_live_parts(counted: Any) -> None:
    (view,) = registry.find("operations")
    params = {"page": "failures", "period": "day"}
    assert "1 job failed" in view.render(counted.ada, params)
    late = counted.jobs[2]
    type(late).objects.filter(pk=late.pk).update(phase="failed", finished_at=clock.now(), started_at=clock.now())
    services.rebuild_jobs(now=clock.now())
    assert "2 jobs failed" in view.render(counted.ada, params)


def test_reports_have_the_waits_and_failures_of_jobs(counted: Any) -> None:
    """Of the reader's tenants, as page, HTML, text and PDF."""
    begin = floor(clock.now(), HOUR) - 2 * HOUR
    span = ReportSpan(begin, begin + 4 * HOUR, begin - 4 * HOUR)
    spec = ReportSpec.parse({"name": "Jobs", "sections": ["waiting", "failures"], "period": "day"})
    contents = compose(spec, span, counted.bob, now=clock.now())
    tables = {part.title: part.table for part in contents.parts if part.table}
    assert [row[:2] for row in tables["Jobs that ended"].rows] == [
        ("Completed", "1"),
        ("Failed", "1"),
        ("Stopped", "0"),
    ]
    assert tables["Waiting times by queue"].rows[0][:2] == ("default", "2")
    assert [row[:2] for row in tables["Failed jobs by cause"].rows] == [("Out of memory", "1")]
    assert tables["Failed jobs by cause"].foot[2] == "50.0 %"
    assert tables["Nodes where most jobs failed"].rows == (("n1", "1", "Out of memory"),)
    assert "<svg" in html_report.document(contents)
    assert "Waiting times" in html_report.text(contents, "")
    assert pdf.document(contents, "").startswith(b"%PDF")
    others = compose(spec, span, counted.ada, now=clock.now())
    assert [part.title for part in others.parts] == [part.title for part in contents.parts]
