"""Jobs beside each other: the page, its file, REST, and who may see it."""

import csv
import io
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people
from tests.apps.test_batches import submit
from tests.support.markup import tidy
from tests.support.metrics import print_metrics

from hekla.apps.accounts.models import User
from hekla.apps.batches.comparison import MOST_JOBS, compare
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job
from hekla.domain.errors import NotFound
from hekla.domain.jobspec import JobSpec
from hekla.lib import clock
from hekla.pages.runs import live as live_views

__all__ = ["db", "people", "shared_people"]
As = Callable[[User], Client]
LOSSES = {"a": [0.9, 0.5], "b": [0.8, 0.1], "c": [0.2, 0.7]}


def job_named(people: People, name: str, *options: str, **task: Any) -> Job:
    tasks = [{"name": "main", "command": ["train", *options], **task}]
    spec = JobSpec.parse({"name": name, "tasks": tasks})
    return services.submit(spec=spec, tenant=people.lab, user=people.alice, now=clock.now())


@pytest.fixture
def runs(people: People) -> list[Job]:
    """Three completed jobs with different learning rates, and their losses."""
    found = []
    for place, (name, losses) in enumerate(LOSSES.items()):
        job = job_named(people, name, "--lr", str(10**-place), "--epochs=3", env={"SEED": "1"})
        print_metrics(job, {"loss": losses, "acc": [1 - loss for loss in losses]})
        found.append(job)
    Job.objects.filter(name__in=LOSSES).update(phase="completed")
    return found


def order(html: str) -> list[str]:
    return re.findall(r'<a href="/jobs/[^"]*">(\w)</a>', html.split('id="runs"')[1].split("</table>", maxsplit=1)[0])


def address(jobs: list[Job], query: str = "", name: str = "runs:compare") -> str:
    return f"{reverse(name)}?{'&'.join(f'job={job.uid}' for job in jobs)}&{query}"


def page_of(client: Client, jobs: list[Job], query: str = "") -> str:
    answer = client.get(address(jobs, query))
    assert answer.status_code == 200
    return answer.content.decode()


def test_page_shows_what_differs_and_the_best(people: People, as_: As, runs: list[Job]) -> None:
    page = tidy(page_of(as_(people.alice), runs, "metric=loss"))
    table = page.split('id="runs"')[1]
    assert 'data-label="lr"' in table
    assert 'data-label="epochs"' not in table
    assert 'data-label="SEED"' not in table
    assert table.count('class="best"') == 1
    best = page.split("<strong>Best run</strong>")[1].split("</p>")[0]
    assert "loss 0.1" in best
    assert "<code>lr=0.1</code>" in best
    assert page.index('id="runs"') < page.index('id="run-plots"'), "the table comes first"
    assert page.count("<polyline") == 3
    assert 'data-plot="run-curves-plot"' in page


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("metric=loss", ["a", "b", "c"]),
        ("metric=loss&sort=m.loss", ["b", "a", "c"]),
        ("metric=loss&sort=m.loss&value=max", ["c", "b", "a"]),
        ("metric=loss&sort=-p.lr", ["a", "b", "c"]),
        ("sort=p.lr", ["c", "b", "a"]),
        ("q=lr=0.1", ["b"]),
    ],
)
def test_address_holds_the_order_and_the_live_part_follows(
    people: People, as_: As, runs: list[Job], query: str, expected: list[str]
) -> None:
    assert order(page_of(as_(people.alice), runs, query)) == expected
    words = {"query": address(runs, query).partition("?")[2]}
    assert order(live_views._comparison(people.alice, words)) == expected
    topics = live_views._topics(people.alice, {"query": f"q={'x' * 2000}&{words['query']}"})
    assert topics == {f"job:{job.uid}" for job in runs} | {f"metrics:{job.pk}" for job in runs}


@pytest.mark.parametrize(
    ("query", "has", "lacks"),
    [
        ("chart=none", [], ["run-curves-plot", "<polyline", "run-scatter-plot"]),
        ("chart=curves&x=time", ["seconds since the start", "loss by time"], ["<polyline", "run-scatter-plot"]),
        ("chart=parallel", ["<polyline"], ["run-curves-plot", "run-scatter-plot"]),
        ("chart=scatter", ["run-scatter-plot", '"type":"log"', "loss by lr"], ["run-curves-plot", "<polyline"]),
        ("chart=wavy&x=width&by=nothing", ["run-curves-plot", "<polyline"], ["run-scatter-plot"]),
    ],
)
def test_charts_are_drawn_on_demand(
    people: People, as_: As, runs: list[Job], query: str, has: list[str], lacks: list[str]
) -> None:
    page = page_of(as_(people.alice), runs, f"metric=loss&{query}")
    assert [word for word in has if word not in page] == []
    assert [word for word in lacks if word in page] == []


@pytest.mark.parametrize("chart", ["curves", "parallel", "scatter"])
def test_runs_whose_metrics_explode_are_drawn(people: People, as_: As, chart: str) -> None:
    jobs = [job_named(people, name, "--lr", str(len(name))) for name in ("a", "bb")]
    for job, losses in zip(jobs, ([1.0, 1e300], [3.4e38, -1.7e308]), strict=True):
        print_metrics(job, {"loss": losses})
    assert f"{'run-' if chart != 'parallel' else ''}{chart}" in page_of(as_(people.alice), jobs, f"chart={chart}")


def test_jobs_of_batches_have_their_parameters(people: People, as_: As) -> None:
    submit(people)
    other = job_named(people, "alone", "--lr", "7", image="own")
    jobs = [*Job.objects.filter(name__startswith="lr-").order_by("name"), other]
    found = compare([job.uid for job in jobs], people.alice)
    assert [run.parameters.get("lr") for run in found] == ["3", "20", "100", "7"]
    assert (found[-1].parameters["image"], found[0].number, found[-1].number) == ("own", 1, 4)


def test_page_without_metrics_says_how_to_print_one(people: People, as_: As) -> None:
    page = page_of(as_(people.alice), [job_named(people, "quiet")])
    assert "None of these jobs has printed a metric." in tidy(page)
    assert "::metric step=100 loss=0.23" in page
    assert 'name="metric"' not in page


def test_page_without_jobs_says_how_to_choose(people: People, as_: As) -> None:
    page = tidy(as_(people.alice).get(reverse("runs:compare")).content.decode())
    assert "Select up to 50 jobs in the list" in page
    assert "data-live-url" not in page


@pytest.mark.parametrize("name", ["runs:compare", "runs:table"])
def test_outsiders_and_unknown_jobs_get_404(people: People, as_: As, runs: list[Job], name: str) -> None:
    assert as_(people.bob).get(address(runs, name=name)).status_code == 200
    assert as_(people.charlie).get(address(runs, name=name)).status_code == 404
    for wrong in ("job=nonsense", f"job={people.alice.pk}", "job=00000000-0000-4000-8000-000000000000"):
        assert as_(people.alice).get(address(runs, wrong, name=name)).status_code == 404
    with pytest.raises(NotFound):
        live_views._topics(people.charlie, {"query": address(runs).partition("?")[2]})


def test_more_jobs_than_a_page_compares_are_refused(people: People, as_: As, runs: list[Job]) -> None:
    many = "&".join(f"job=00000000-0000-4000-8000-{number:012}" for number in range(MOST_JOBS))
    answer = as_(people.alice).get(address(runs, many))
    assert answer.status_code == 400
    assert "Compare at most 50 jobs at a time." in answer.content.decode()


def test_the_list_leads_to_the_comparison(people: People, as_: As, runs: list[Job]) -> None:
    alice = as_(people.alice)
    assert f'formaction="{reverse("jobs:compare")}"' in alice.get(reverse("jobs:list")).content.decode()
    answer = alice.post(reverse("jobs:compare"), {"uid": [str(job.uid) for job in runs[:2]], "query": ""})
    assert parse_qs(urlsplit(answer["Location"]).query)["job"] == [str(job.uid) for job in runs[:2]]
    assert alice.get(answer["Location"]).status_code == 200
    answer = alice.post(reverse("jobs:compare"), {"all": "yes", "query": "phase=completed&sort=name"})
    assert parse_qs(urlsplit(answer["Location"]).query)["job"] == [str(job.uid) for job in runs]


def test_too_many_selected_jobs_are_cut_with_a_warning(people: People, as_: As) -> None:
    submit(people, parameters={"lr": list(range(MOST_JOBS + 1))})
    alice = as_(people.alice)
    page = alice.post(reverse("jobs:compare"), {"all": "yes", "query": "sort=name"}, follow=True).content.decode()
    assert "A comparison has at most 50 jobs." in page
    assert page.count('<tr id="run-') >= MOST_JOBS


def test_table_as_csv(people: People, as_: As, runs: list[Job]) -> None:
    answer = as_(people.alice).get(address(runs, "metric=loss&sort=m.loss", name="runs:table"))
    rows = list(csv.DictReader(io.StringIO(answer.content.decode())))
    assert answer["Content-Disposition"].startswith('attachment; filename="comparison-')
    assert [(row["job"], row["parameter.lr"], row["metric.loss.last"], row["best"]) for row in rows] == [
        ("b", "0.1", "0.1", "yes"), ("a", "1", "0.5", ""), ("c", "0.01", "0.7", ""),
    ]  # fmt: skip


def test_hostile_names_are_escaped(people: People, as_: As, runs: list[Job]) -> None:
    evil = job_named(people, "evil", "--lr", "<b>1</b>", "%{x} 2=3")
    print_metrics(evil, {"loss": [1.0, 2.0]})
    for query in ("metric=loss", "metric=loss&chart=scatter&by=lr"):
        assert "<b>1" not in page_of(as_(people.alice), [*runs, evil], query)


def test_queries_do_not_grow_with_the_runs(people: People, as_: As) -> None:
    """Fifty runs with ten metrics each, of 256 points: the load of `bench console`."""
    submit(people, parameters={"lr": list(range(MOST_JOBS))})
    jobs = list(Job.objects.order_by("pk"))
    for job in jobs:
        print_metrics(job, {f"m{n}": [float(step % 7 + job.pk) for step in range(260)] for n in range(10)})
    client, counts = as_(people.alice), []
    page_of(client, jobs[:1])  # fills caches
    for found in (jobs[:2], jobs):
        with CaptureQueriesContext(
            connection,
        ) as captured:
            page = page_of(client, found, "metric=m3")
        counts.append(len(captured))
    assert counts[0] == counts[1] <= 14
    assert page.count('<tr id="run-') == MOST_JOBS
    assert len(page) < 600_000
