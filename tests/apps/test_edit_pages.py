"""Two people have the same edit page open: neither undoes what the other has saved."""

from collections.abc import Callable
from dataclasses import dataclass
from html import unescape
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People
from tests.support.form_fields import form_fields

from hekla.apps.clusters import services as clusters
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.priorities import services as priorities
from hekla.apps.queues import services as queues
from hekla.apps.tenancy import departments
from hekla.apps.tenancy import services as tenancy
from hekla.domain.errors import Refused
from hekla.lib import clock
from hekla.pages.frame.edit_form import EditForm
from hekla.pages.tenancy.forms import TenantChangeForm

CONFLICT = "Somebody else changed this meanwhile. Save again to use your value."
As = Callable[[Any], Client]


@dataclass(frozen=True, slots=True)
class EditPage:
    """A page that edits a row. `row`: makes it, and returns the argument of the page. `one`: a field and its new value.
    `other`: a text field and two new values.
    """

    view: str
    row: Callable[[People], object]
    one: Callable[[People], tuple[str, str]]
    other: tuple[str, str, str]


def _acts() -> dict[str, Any]:
    return {"actor": PLATFORM, "now": clock.now()}


def _department(people: People) -> str:
    sets = {"heads": [people.alice], "tenants": [people.lab]}
    return departments.create(slug="science", name="Science", description="", **sets, **_acts()).slug


def _priority_class(_people: People) -> str:
    return priorities.create(name="high", values={"value": 5, "description": ""}, tenants=[], **_acts()).name


def _environment(_people: People) -> str:
    return clusters.create_environment(name="env", description="", requirements="", **_acts()).name


def _federated_queue(people: People) -> str:
    beyond = clusters.create(name="beyond", kind="simulated", config={}, **_acts())
    far = queues.create(cluster=beyond, name="far", **_acts())
    return queues.create_federated(name="over", members=[people.queue, far], **_acts()).name


DESCRIPTION = ("description", "One\r\nline", "Another")
CONFIGS = ('{\r\n  "nodes": []\r\n}', '{\r\n  "seed": 3,\r\n  "nodes": []\r\n}')
PAGES = {
    "queue": EditPage("queues:edit", lambda people: people.queue.name, lambda _: ("weight", "3"), DESCRIPTION),
    "federated queue": EditPage(
        "federated_queues:edit", _federated_queue, lambda people: ("tenants", str(people.lab.pk)), DESCRIPTION
    ),
    "tenant": EditPage("tenancy:edit", lambda people: people.lab.slug, lambda _: ("name", "New"), DESCRIPTION),
    "department": EditPage("departments:edit", _department, lambda _: ("heads", "alice, bob"), DESCRIPTION),
    "priority class": EditPage("priorities:edit", _priority_class, lambda _: ("is_default", "on"), DESCRIPTION),
    "environment": EditPage("clusters:edit_environment", _environment, lambda _: ("requirements", "a"), DESCRIPTION),
    "person": EditPage(
        "accounts:edit", lambda people: people.bob.pk, lambda _: ("username", "rob"), ("display_name", "Rob", "Robert")
    ),
    "cluster": EditPage(
        "clusters:edit", lambda people: people.cluster.name, lambda _: ("is_paused", "on"), ("config", *CONFIGS)
    ),
}


@pytest.fixture(params=PAGES)
def page(request: pytest.FixtureRequest) -> EditPage:
    return PAGES[request.param]


def _open(browser: Client, address: str) -> dict[str, list[str]]:
    return form_fields(browser.get(address).content.decode())


def test_every_edit_form_of_a_row_is_tested() -> None:
    assert len(EditForm.__subclasses__()) == len(PAGES)


def test_fields_that_a_person_left_alone_keep_what_others_saved(page: EditPage, people: People, as_: As) -> None:
    address, (name, value), (other, text, _) = reverse(page.view, args=[page.row(people)]), page.one(people), page.other
    ada = as_(people.ada)
    first, second = _open(ada, address), _open(ada, address)
    assert ada.post(address, {**first, name: value}).status_code == 302
    saved = _open(ada, address)
    assert saved[name] == [value] != first.get(name)
    assert ada.post(address, {**second, other: text}).status_code == 302
    found = _open(ada, address)
    assert (found[name], found[other]) == ([value], [text])


def test_change_of_the_same_field_is_reported_and_then_saved(page: EditPage, people: People, as_: As) -> None:
    address, (name, text, again) = reverse(page.view, args=[page.row(people)]), page.other
    ada = as_(people.ada)
    first, second = _open(ada, address), _open(ada, address)
    assert ada.post(address, {**first, name: text}).status_code == 302
    answer = ada.post(address, {**second, name: again})
    content = answer.content.decode()
    assert (answer.status_code, CONFLICT in unescape(content), form_fields(content)[name]) == (200, True, [again])
    assert _open(ada, address)[name] == [text]
    assert ada.post(address, form_fields(content)).status_code == 302
    assert _open(ada, address)[name] == [again]


def test_change_at_the_same_moment_is_refused(people: People) -> None:
    """Somebody else saves between the validation of a form and the lock of its row."""
    form = TenantChangeForm({"name": "Mine", "description": "", "is_active": "on"}, instance=people.lab)
    assert form.is_valid()
    type(people.lab).objects.filter(pk=people.lab.pk).update(description="Theirs")
    with pytest.raises(Refused, match="at the same moment"), form.saving():
        tenancy.change(people.lab, form.cleaned_data, **_acts())
    people.lab.refresh_from_db()
    assert (people.lab.name, people.lab.description) == ("Lab", "Theirs")
