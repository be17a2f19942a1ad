"""What people keep to begin jobs with: their own is theirs alone, a tenant's is its admins' to change."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People
from tests.apps.test_submission import typed

from hekla.apps.accounts.models import User
from hekla.apps.event_log import selectors as event_log
from hekla.apps.jobs.models import Job
from hekla.apps.presets import selectors, services
from hekla.apps.presets.models import Preset
from hekla.apps.tenancy.models import Tenant
from hekla.domain.errors import Forbidden, NotFound, Refused
from hekla.domain.jobspec import JobSpec
from hekla.lib import clock

As = Callable[[User], Client]
SPEC = JobSpec.parse({"name": "base", "priority": 7, "tasks": [{"name": "main", "command": ["true"]}]})


def keep(user: User, name: str = "usual", tenant: Tenant | None = None, spec: JobSpec = SPEC) -> Preset:
    return services.save(name=name, spec=spec, user=user, tenant=tenant, now=clock.now())


@pytest.mark.parametrize("route", ["jobs:submit", "jobs:submit_yaml"])
def test_the_job_on_the_page_is_kept_and_begun_with(people: People, as_: As, route: str) -> None:
    alice = as_(people.alice)
    asked = {"do": "keep", "preset-name": "  my   usual ", "text": "name: mine\ntasks: [{name: main, command: [sh]}]"}
    page = alice.post(reverse(route), typed(description="long") | asked, follow=True)
    preset = Preset.objects.get()
    assert (preset.name, preset.tenant, Job.objects.count()) == ("my usual", None, 0)
    assert page.context["form"]["name"].value() == "mine-1"
    assert f'value="saved:{preset.uid}"' in page.content.decode()


def test_nothing_typed_is_lost_where_a_preset_has_no_name(people: People, as_: As) -> None:
    page = as_(people.alice).post(reverse("jobs:submit"), typed(description="long", do="keep")).content.decode()
    assert "name of a preset has 1 to 60 characters" in page
    assert ">long<" in page.replace("\n", "")
    assert not Preset.objects.exists()


def test_a_preset_is_kept_in_the_place_of_what_had_its_name(people: People) -> None:
    first = keep(people.alice)
    again = keep(people.alice, spec=SPEC.model_copy(update={"priority": 8}))
    assert (again.pk, again.spec["priority"]) == (first.pk, 8)
    assert keep(people.alice, tenant=people.lab).pk != first.pk
    assert [event.kind for event in event_log.about(f"preset:{first.uid}")] == ["PresetSaved", "PresetSaved"]


def test_ones_own_is_seen_by_nobody_else(people: People, as_: As) -> None:
    preset, theirs = keep(people.alice), keep(people.alice, "ours", people.lab)
    assert set(selectors.visible_to(people.bob)) == {theirs}
    assert set(selectors.visible_to(people.ada)) == {theirs}
    assert set(selectors.visible_to(people.charlie)) == set()
    for user in (people.bob, people.charlie):
        assert as_(user).get(reverse("jobs:submit"), {"saved": str(preset.uid)}).status_code == 404


def test_only_admins_keep_and_change_what_is_for_the_whole_tenant(people: People) -> None:
    ours = keep(people.alice, "ours", people.lab)
    with pytest.raises(Forbidden):
        keep(people.bob, "other", people.lab)
    with pytest.raises(NotFound):
        keep(people.charlie, "other", people.lab)
    with pytest.raises(Forbidden):
        services.rename(ours, "bobs", user=people.bob, now=clock.now())
    assert services.rename(ours, "adas", user=people.ada, now=clock.now()).name == "adas"


def test_a_default_begins_new_jobs_and_ones_own_goes_before_the_tenants(people: People, as_: As) -> None:
    ours, mine = keep(people.alice, "ours", people.lab), keep(people.alice, "mine")
    other = keep(people.alice, "other")

    def first() -> int:
        return as_(people.alice).get(reverse("jobs:submit")).context["form"]["priority"].value() or 0

    assert first() == 0
    services.set_default(ours, is_default=True, user=people.alice, now=clock.now())
    assert (first(), selectors.default(people.bob, people.lab)) == (7, ours)
    for chosen in (mine, other):
        services.set_default(chosen, is_default=True, user=people.alice, now=clock.now())
    assert selectors.default(people.alice, people.lab) == other
    assert set(Preset.objects.filter(is_default=True)) == {ours, other}
    plain = as_(people.alice).get(reverse("jobs:submit"), {"preset": "single"}).context
    assert not plain["form"]["priority"].value()


@pytest.mark.parametrize("name", ["", "   ", "x" * 61, "a\x07b"])
def test_a_name_that_is_none_is_refused(people: People, name: str) -> None:
    with pytest.raises(Refused):
        keep(people.alice, name)


def test_the_page_renames_chooses_and_forgets(people: People, as_: As) -> None:
    alice, preset = as_(people.alice), keep(people.alice)
    keep(people.alice, "taken")
    page = alice.post(reverse("jobs:rename_preset", args=[preset.uid]), {"name": "taken"}, follow=True)
    assert "already" in page.content.decode()
    alice.post(reverse("jobs:rename_preset", args=[preset.uid]), {"name": "better"})
    alice.post(reverse("jobs:choose_preset", args=[preset.uid]), {"default": "yes"})
    preset.refresh_from_db()
    assert (preset.name, preset.is_default) == ("better", True)
    assert "Default for new jobs" in alice.get(reverse("jobs:presets")).content.decode()
    alice.post(reverse("jobs:delete_preset", args=[preset.uid]))
    assert not Preset.objects.filter(pk=preset.pk).exists()


def test_a_program_keeps_looks_begins_and_forgets(people: People, as_: As) -> None:
    alice = as_(people.alice)
    body = {"name": "usual", "tenant": "lab", "spec": SPEC.document()}
    made = alice.post("/api/v1/presets", body, content_type="application/json")
    assert (made.status_code, made.json()["spec"]) == (201, SPEC.document())
    address = f"/api/v1/presets/{made.json()['uid']}"
    assert [each["name"] for each in alice.get("/api/v1/presets").json()["results"]] == ["usual"]
    assert alice.get(f"{address}/copy").json()["spec"]["name"] == "base-1"
    changed = alice.patch(address, {"name": "other", "is_default": True}, content_type="application/json").json()
    assert (changed["name"], changed["is_default"], changed["tenant"]) == ("other", True, "lab")
    assert alice.delete(address).status_code == 204
