"""Presets: personal ones are private, and only admins change those of a tenant."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people
from tests.apps.test_submission import minimal_form

from hekla.apps.accounts.models import User
from hekla.apps.event_log import selectors as event_log
from hekla.apps.jobs.models import Job
from hekla.apps.presets import selectors, services
from hekla.apps.presets.models import Preset
from hekla.apps.tenancy.models import Tenant
from hekla.domain.errors import Forbidden, NotFound, Refused
from hekla.domain.jobspec import JobSpec
from hekla.lib import clock

__all__ = ["db", "people", "shared_people"]

As = Callable[[User], Client]
SPEC = JobSpec.parse({"name": "base", "priority": 7, "tasks": [{"name": "main", "command": ["true"]}]})


def save_preset(user: User, name: str = "usual", tenant: Tenant | None = None, spec: JobSpec = SPEC) -> Preset:
    return services.save(name=name, spec=spec, user=user, tenant=tenant, now=clock.now())


@pytest.mark.parametrize("route", ["jobs:submit", "jobs:submit_yaml"])
def test_form_is_saved_as_a_preset_and_loaded(people: People, as_: As, route: str) -> None:
    alice = as_(people.alice)
    form = {"do": "keep", "preset-name": "  my   usual ", "text": "name: mine\ntasks: [{name: main, command: [sh]}]"}
    page = alice.post(reverse(route), minimal_form(description="long") | form, follow=True)
    preset = Preset.objects.get()
    assert (preset.name, preset.tenant, Job.objects.count()) == ("my usual", None, 0)
    assert page.context["form"]["name"].value() == "mine-1"
    assert f'value="saved:{preset.uid}"' in page.content.decode()


def test_preset_without_a_name_keeps_the_input(people: People, as_: As) -> None:
    page = as_(people.alice).post(reverse("jobs:submit"), minimal_form(description="long", do="keep")).content.decode()
    assert "name of a template has 1 to 60 characters" in page
    assert ">long<" in page.replace("\n", "")
    assert not Preset.objects.exists()


def test_saving_replaces_the_preset_of_the_same_name(people: People) -> None:
    first = save_preset(people.alice)
    again = save_preset(people.alice, spec=SPEC.model_copy(update={"priority": 8}))
    assert (again.pk, again.spec["priority"]) == (first.pk, 8)
    assert save_preset(people.alice, tenant=people.lab).pk != first.pk
    assert [event.kind for event in event_log.about(f"preset:{first.uid}")] == ["PresetSaved", "PresetSaved"]


def test_personal_presets_are_private(people: People, as_: As) -> None:
    preset, shared = save_preset(people.alice), save_preset(people.alice, "ours", people.lab)
    assert set(selectors.visible_to(people.bob)) == {shared}
    assert set(selectors.visible_to(people.ada)) == {shared}
    assert set(selectors.visible_to(people.charlie)) == set()
    for user in (people.bob, people.charlie):
        assert as_(user).get(reverse("jobs:submit"), {"saved": str(preset.uid)}).status_code == 404


def test_only_admins_change_tenant_presets(people: People) -> None:
    ours = save_preset(people.alice, "ours", people.lab)
    with pytest.raises(Forbidden):
        save_preset(people.bob, "other", people.lab)
    with pytest.raises(NotFound):
        save_preset(people.charlie, "other", people.lab)
    with pytest.raises(Forbidden):
        services.rename(ours, "bobs", user=people.bob, now=clock.now())
    assert services.rename(ours, "adas", user=people.ada, now=clock.now()).name == "adas"


def test_personal_default_overrides_the_tenant_default(people: People, as_: As) -> None:
    ours, mine = save_preset(people.alice, "ours", people.lab), save_preset(people.alice, "mine")
    other = save_preset(people.alice, "other")

    def first() -> int:
        return as_(people.alice).get(reverse("jobs:submit")).context["form"]["priority"].value() or 0

    assert first() == 0
    services.set_default(ours, is_default=True, user=people.alice, now=clock.now())
    assert (first(), selectors.default_of(selectors.offered(people.bob, people.lab))) == (7, ours)
    for preset in (mine, other):
        services.set_default(preset, is_default=True, user=people.alice, now=clock.now())
    assert selectors.default_of(selectors.offered(people.alice, people.lab)) == other
    assert set(Preset.objects.filter(is_default=True)) == {ours, other}
    plain = as_(people.alice).get(reverse("jobs:submit"), {"preset": "single"}).context
    assert not plain["form"]["priority"].value()


@pytest.mark.parametrize("name", ["", "   ", "x" * 61, "a\x07b"])
def test_invalid_name_is_refused(people: People, name: str) -> None:
    with pytest.raises(Refused):
        save_preset(people.alice, name)


def test_page_renames_sets_default_and_deletes(people: People, as_: As) -> None:
    alice, preset = as_(people.alice), save_preset(people.alice)
    save_preset(people.alice, "taken")
    page = alice.post(reverse("jobs:rename_preset", args=[preset.uid]), {"name": "taken"}, follow=True)
    assert "already" in page.content.decode()
    alice.post(reverse("jobs:rename_preset", args=[preset.uid]), {"name": "better"})
    alice.post(reverse("jobs:choose_preset", args=[preset.uid]), {"default": "yes"})
    preset.refresh_from_db()
    assert (preset.name, preset.is_default) == ("better", True)
    assert "Default for new jobs" in alice.get(reverse("jobs:presets")).content.decode()
    alice.post(reverse("jobs:delete_preset", args=[preset.uid]))
    assert not Preset.objects.filter(pk=preset.pk).exists()


def test_former_address_of_the_list_keeps_its_filter(people: People, as_: As) -> None:
    found = as_(people.alice).get("/jobs/presets/?q=usual")
    assert (found.status_code, found["Location"]) == (301, "/jobs/templates/?q=usual")


def test_presets_over_rest(people: People, as_: As) -> None:
    alice = as_(people.alice)
    body = {"name": "usual", "tenant": "lab", "spec": SPEC.document()}
    made = alice.post("/api/v1/saved_templates", body, content_type="application/json")
    assert (made.status_code, made.json()["spec"]) == (201, SPEC.document())
    address = f"/api/v1/saved_templates/{made.json()['uid']}"
    assert [each["name"] for each in alice.get("/api/v1/saved_templates").json()["results"]] == ["usual"]
    assert alice.get(f"{address}/copy").json()["spec"]["name"] == "base-1"
    changed = alice.patch(address, {"name": "other", "is_default": True}, content_type="application/json").json()
    assert (changed["name"], changed["is_default"], changed["tenant"]) == ("other", True, "lab")
    assert alice.delete(address).status_code == 204
