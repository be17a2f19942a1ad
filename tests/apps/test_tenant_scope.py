"""The switch of tenants limits every list of things that tenants own, also its live rendering and bulk actions."""

import re
from collections.abc import Callable

import pytest
from django.http import QueryDict
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People

from hekla.apps.accounts.models import User
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.flows import services as flows
from hekla.apps.jobs import services as jobs
from hekla.apps.tenancy import services as tenancy
from hekla.domain.flows import FlowSpec
from hekla.domain.jobspec import JobSpec
from hekla.lib import clock
from hekla.pages.flows.tables import flows_for

As = Callable[[User], Client]
JOB = {"name": "theirs", "tasks": [{"name": "main", "command": ["true"]}]}


@pytest.fixture
def both(people: People) -> People:
    """Alice is in both tenants; each has a job."""
    tenancy.add_member(people.other, people.alice, "member", actor=PLATFORM, now=clock.now())
    people.submit("ours")
    jobs.submit(spec=JobSpec.parse(JOB), tenant=people.other, user=people.charlie, now=clock.now())
    return people


def listed(client: Client, query: str = "") -> set[str]:
    page = client.get(f"{reverse('jobs:list')}?{query}").content.decode()
    return set(re.findall(r'<th scope="row"><a href="[^"]+">([^<]+)<', page))


def switch(client: Client, slug: str) -> None:
    client.post(reverse("tenancy:switch"), {"tenant": slug})


def test_jobs_of_the_chosen_tenant_are_listed(both: People, as_: As) -> None:
    client = as_(both.alice)
    assert listed(client) == {"ours", "theirs"}
    switch(client, "other")
    assert listed(client) == {"theirs"}
    assert listed(client, "tenant=lab") == {"ours"}
    page = client.get(reverse("jobs:list"))
    assert QueryDict(page.context["query"])["tenant"] == "other"
    assert "Remove filter" not in page.content.decode()
    form = {"action": "AbortJob", "all": "yes", "query": page.context["query"]}
    report = client.post(reverse("jobs:act_on_all"), form, follow=True).context["report"]
    assert [one["names"] for one in report["refused"]] == [["theirs"]], (
        "a member may not abort it, and ours is left alone"
    )
    switch(client, "")
    assert listed(client) == {"ours", "theirs"}
    assert page.context["nav"]["tenant"] == both.other


def test_other_lists_follow_with_their_live_rendering(both: People, as_: As) -> None:
    for tenant, user in ((both.lab, both.alice), (both.other, both.charlie)):
        spec = FlowSpec.parse({"name": f"flow-{tenant.slug}", "steps": [{"name": "a", "job": {"tasks": JOB["tasks"]}}]})
        flows.start(spec=spec, tenant=tenant, user=user, now=clock.now())
    client = as_(both.alice)
    found = client.get(reverse("flows:list")).context["flows"]
    assert len(found.records) == 2
    switch(client, "other")
    found = client.get(reverse("flows:list")).context["flows"]
    assert [row["flow"].name for row in found.records] == ["flow-other"]
    assert len(flows_for(QueryDict(found.live_query), both.alice).records) == 1
    assert len(client.get(f"{reverse('flows:list')}?tenant=%00").context["flows"].records) == 0
