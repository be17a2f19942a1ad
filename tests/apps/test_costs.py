"""Price lists and costs, from the form and REST to figures, pods, reports and the estimate of a job."""

import csv
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from tests.apps.shared_people import db, people, shared_people
from tests.apps.test_measures import MINUTE, measured

from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.measures import following, job_costs, services
from hekla.apps.measures.models import HolderCost
from hekla.apps.prices import services as prices
from hekla.apps.prices.models import PriceList
from hekla.apps.queues import services as queues
from hekla.apps.reports import composing
from hekla.domain.errors import Forbidden, Refused
from hekla.domain.prices import PriceSpec
from hekla.domain.reports import ReportSpan, ReportSpec
from hekla.lib import clock

__all__ = ["db", "measured", "people", "shared_people"]
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
FORM = {
    **{"name": "2100", "currency": "EUR", "day": "2100-01-01", "hour": "0", "cpu": "0.10", "memory": "0", "gpu": "6"},
    **{"window_0_days": "all", "window_0_begin": "20", "window_0_end": "6", "window_0_factor": "0.5"},
}


def spec(**more: Any) -> PriceSpec:
    return PriceSpec.parse({"name": "2026", "currency": "EUR", "gpu": "6", "cpu": "0.6", **more})


@pytest.fixture
def priced(measured: Any) -> Any:
    """The hours with GPUs and two pods of `measured`, with prices since two hours before."""
    prices.create(spec=spec(), begin_at=measured.begin - 2 * HOUR, user=measured.ada, now=clock.now())
    services.roll_up(now=measured.begin + 41 * MINUTE, settle=timedelta(), most_seconds=60)
    return measured


def costs(as_: Any, user: Any, **query: str) -> Any:
    response = as_(user).get(reverse("api:v1:cost"), {"period": "day", **query})
    return response.json() if response.status_code == 200 else response.status_code


def test_costs_are_for_those_who_may_see_them(priced: Any, as_: Any) -> None:
    """A GPU costs 6 an hour, a core 0.6: half an hour of two GPUs, 20 minutes of one, and a core of each pod."""
    found = costs(as_, priced.ada)
    gpus = {name: Decimal(amount) for name, amount in found["cost"].items() if name in ("useful", "idle")}
    assert gpus == {"useful": Decimal(3), "idle": Decimal(3)}
    assert found["currency"] == "EUR"
    assert {(one["resource"], round(one["hours"], 2)) for one in found["resources"]} >= {("gpu", 1.33)}
    assert Decimal(found["cost"]["gang"]) == Decimal("2.2")  # 20 minutes of a GPU and a core
    assert Decimal(found["cost"]["unmeasured"]) == Decimal("0.3")  # half an hour of a core
    assert Decimal(found["total"]) == sum(Decimal(part["total"]) for part in found["parts"])
    assert found["forecast"]["total"] is None
    assert costs(as_, priced.bob)["total"] == found["total"]
    assert Decimal(costs(as_, priced.charlie)["total"]) == 0
    assert costs(as_, priced.charlie, tenant="lab") == 404
    for by in ("queue", "person", "kind", "cluster"):
        (part,) = costs(as_, priced.ada, by=by, tenant="lab")["parts"]
        assert part["total"] == found["total"]
    by_model = {part["name"]: Decimal(part["total"]) for part in costs(as_, priced.ada, by="model")["parts"]}
    assert by_model == {"A100": Decimal(8), "": Decimal("0.5")}
    assert Decimal(costs(as_, priced.ada, model="A100", queue="default")["total"]) == 8


def page(as_: Any, user: Any, name: str, **query: str) -> str:
    response = as_(user).get(reverse(name), query)
    assert response.status_code == 200
    return response.content.decode()


def test_pages_lead_from_costs_to_pods_and_from_waste_to_its_worth(priced: Any, as_: Any) -> None:
    text = page(as_, priced.alice, "operations:cost", period="day")
    assert "8.50 EUR" in text
    assert "Too little past for a forecast" in text
    assert '"barmode":"stack"' in text
    pods = page(as_, priced.alice, "operations:cost_pods", period="day")
    gang, train = (Decimal(cost) for cost in re.findall(r">(\d+\.\d\d) EUR<", pods))
    assert gang >= Decimal("2.2")  # they go on, so they cost a little more by now
    assert Decimal("6.3") <= train <= 3 * gang
    assert "No pods" in page(as_, priced.charlie, "operations:cost_pods")
    assert re.search(r"Their pods cost \d\.\d\d EUR in this time", page(as_, priced.alice, "operations:waste"))
    rows = list(csv.DictReader(page(as_, priced.alice, "operations:cost_file", period="day").splitlines()))
    assert sum(Decimal(row["total"]) for row in rows) == Decimal("8.5")


def test_a_report_has_the_costs_of_its_reader(priced: Any) -> None:
    begin = clock.now() - DAY
    found = ReportSpec.parse({"name": "Cost", "sections": ["cost"]})
    span = ReportSpan(begin.replace(minute=0, second=0, microsecond=0), clock.now() + HOUR, begin - DAY)
    parts = composing.compose(found, span, priced.alice, now=clock.now()).parts
    assert parts[0].table is not None
    assert parts[0].table.rows[0][:2] == ("Lab", "8.50 EUR")


def test_a_list_never_changes_the_past(people: Any) -> None:
    now = clock.now()
    first = prices.create(spec=spec(), begin_at=now - DAY, user=people.ada, now=now)
    for begin, why in ((now - HOUR, "in the past"), (first.begin_at, "begins in the same hour")):
        with pytest.raises(Refused, match=why):
            prices.create(spec=spec(), begin_at=begin, user=people.ada, now=now)
    with pytest.raises(Refused, match="same currency"):
        prices.create(spec=spec(currency="USD"), begin_at=now + DAY, user=people.ada, now=now)
    with pytest.raises(Refused, match="has begun"):
        prices.delete(first, user=people.ada, now=now)
    second = prices.create(spec=spec(gpu="7"), begin_at=now + DAY, user=people.ada, now=now)
    prices.delete(second, user=people.ada, now=now)
    with pytest.raises(Forbidden):
        prices.create(spec=spec(), begin_at=now + DAY, user=people.alice, now=now)
    kinds = list(LoggedEvent.objects.filter(kind__startswith="PriceList").values_list("kind", flat=True))
    assert kinds == ["PriceListCreated", "PriceListCreated", "PriceListDeleted"]


def test_form_says_what_is_wrong_and_keeps_what_was_typed(people: Any, as_: Any) -> None:
    address = reverse("prices:create")
    text = as_(people.ada).post(address, {**FORM, "gpu": "a lot", "window_0_factor": "x"}).content.decode()
    assert "“a lot” is not a price" in text
    assert "“x” is not a factor" in text
    assert 'value="a lot"' in text
    assert as_(people.ada).post(address, FORM).status_code == 302
    made = PriceList.objects.get()
    assert made.begin_at == datetime(2100, 1, 1, tzinfo=UTC)
    text = as_(people.alice).get(reverse("prices:detail", args=[made.uid])).content.decode()
    assert "every day, 20:00 to 06:00" in text
    assert "New list from this one" not in text
    copied = as_(people.ada).get(address, {"from": str(made.uid)}).content.decode()
    assert 'value="0.10"' in copied


def test_first_lists_are_added_one_after_another(people: Any) -> None:
    """There is no row yet to lock: two first lists at once could both begin in the past, in two currencies."""
    now = clock.now()
    with CaptureQueriesContext(connection) as queries:
        prices.create(spec=spec(), begin_at=now - DAY, user=people.ada, now=now)
    texts = [query["sql"] for query in queries]
    lock = next(place for place, text in enumerate(texts) if text.startswith("LOCK TABLE"))
    assert lock < next(place for place, text in enumerate(texts) if 'FROM "prices_pricelist"' in text)


def test_new_queue_gets_no_factor_that_was_typed_for_another(people: Any, as_: Any) -> None:
    address, client = reverse("prices:create"), as_(people.ada)
    (field,) = re.findall(r'name="(queue_\w+)"', client.get(address).content.decode())
    queues.create(cluster=people.cluster, name="a-first-one", actor=PLATFORM, now=clock.now())
    assert client.post(address, {**FORM, field: "0.25"}).status_code == 302
    assert PriceList.objects.get().factors == {str(people.queue.pk): "0.25"}


def test_copy_of_a_list_keeps_all_windows(people: Any, as_: Any) -> None:
    windows = [{"begin": hour, "end": hour + 1, "factor": f"0.{hour}"} for hour in range(1, 7)]
    made = prices.create(spec=spec(windows=windows), begin_at=clock.now() + DAY, user=people.ada, now=clock.now())
    copied = as_(people.ada).get(reverse("prices:create"), {"from": str(made.uid)}).content.decode()
    assert re.search(r'name="window_5_factor"[^>]*value="0\.6"', copied)


def test_factors_of_hidden_queues_are_not_for_others(people: Any, as_: Any) -> None:
    now = clock.now()
    made = prices.create(spec=spec(queues={"default": "0.25"}), begin_at=now + DAY, user=people.ada, now=now)
    address = reverse("api:v1:price_list", args=[made.uid])
    assert as_(people.alice).get(address).json()["spec"]["queues"] == {"default": "0.25"}
    people.queue.tenants.set([people.other])
    assert as_(people.bob).get(address).json()["spec"]["queues"] == {}


def test_estimate_is_from_the_limit_or_from_earlier_jobs(priced: Any, as_: Any) -> None:
    task = {"name": "main", "replicas": 2, "command": ["true"], "resources": {"cpu": "1", "nvidia.com/gpu": "1"}}
    job = priced.submit("later", tasks=[task], active_deadline_seconds=7200)
    found = job_costs.cost_of(job, now=clock.now())
    assert found is not None
    assert found.sentences() == ["About 26.40 EUR for 2 h, its time limit. It costs less if it ends sooner."]
    card = as_(priced.alice).get(reverse("job_cost", args=[job.uid])).content.decode()
    assert "26.40 EUR" in card
    for number in range(5):
        early = priced.submit(f"early-{number}", tasks=[task])
        began = clock.now() - DAY
        type(job).objects.filter(pk=early.pk).update(
            phase="completed", started_at=began, finished_at=began + timedelta(minutes=30)
        )
    found = job_costs.cost_of(job, now=clock.now())
    assert found is not None
    assert found.sentences() == ["About 6.60 EUR for 30 min, the usual run time of 5 earlier jobs."]


def pod_without_gpus(people: Any, **more: Any) -> Any:
    """A pod with two cores for an hour and a half, on a cluster without GPUs, with these prices; all is measured."""
    type(people.cluster).objects.filter(pk=people.cluster.pk).update(kind="local")
    begin = clock.now().replace(minute=0, second=0, microsecond=0) - 3 * HOUR
    prices.create(spec=spec(**more), begin_at=begin - DAY, user=people.ada, now=clock.now())
    job = people.submit("plain", tasks=[{"name": "main", "command": ["true"], "resources": {"cpu": "2"}}])
    pod = job.pods.create(
        task="main", index=0, attempt=1, version=1, slot=0, address="", node="n", phase="succeeded", created_at=begin,
        bound_at=begin, started_at=begin + 15 * MINUTE, finished_at=begin + HOUR + 30 * MINUTE,
    )  # fmt: skip
    following.refresh([job.pk], now=begin)
    services.roll_up(now=clock.now(), settle=timedelta(), most_seconds=60)
    return pod


def test_absurd_prices_stop_no_measures(people: Any) -> None:
    always = {"begin": 0, "end": 0, "factor": "999.999"}
    pod_without_gpus(people, cpu="9999999", queues={"default": "999.999"}, windows=[always])
    assert max(HolderCost.objects.values_list("unmeasured", flat=True)) == 2**63 - 1


def test_pods_without_gpus_cost_something_too(people: Any, as_: Any) -> None:
    """Nothing else is measured on a cluster without GPUs."""
    pod = pod_without_gpus(people)
    found = costs(as_, people.alice)
    assert {name: Decimal(amount) for name, amount in found["cost"].items() if Decimal(amount)} == {
        "gang": Decimal("0.3"), "unmeasured": Decimal("1.5"),
    }  # fmt: skip
    assert HolderCost.objects.filter(level=60).count() == 2
    assert "No GPU time is measured yet" in page(as_, people.ada, "operations:gpu_time")
    assert pod.pk
