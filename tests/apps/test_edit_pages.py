"""Two people have the same edit page open: neither undoes what the other has saved."""

import ast
from collections.abc import Callable, Collection
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import resolve, reverse
from tests.apps.access_world import SPEC as DOCUMENT
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people
from tests.support.form_fields import form_fields

from hekla import pages
from hekla.apps.alerts import services as alerts
from hekla.apps.clusters import services as clusters
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.flows import services as flows
from hekla.apps.gallery import services as gallery
from hekla.apps.priorities import services as priorities
from hekla.apps.queues import services as queues
from hekla.apps.quotas.models import Quota
from hekla.apps.reports import services as reports
from hekla.apps.schedules import services as schedules
from hekla.apps.tenancy import departments
from hekla.apps.tenancy import services as tenancy
from hekla.domain import formats
from hekla.domain.alert_rules import AlertRuleSpec
from hekla.domain.errors import Refused
from hekla.domain.jobspec import JobSpec
from hekla.domain.reports import ReportSpec
from hekla.domain.schedules import ScheduleSpec
from hekla.lib import clock
from hekla.pages import registry
from hekla.pages.frame.edit_form import EditForm
from hekla.pages.tenancy.forms import TenantChangeForm

__all__ = ["db", "people", "shared_people"]
CONFLICT = "Somebody else changed this meanwhile. Save again to use your value."
As = Callable[[Any], Client]


@dataclass(frozen=True, slots=True)
class EditPage:
    """A page that edits something stored. `address`: makes what it edits, and returns the address of the page.

    `one`: a field and its new value; None if the page has one field. `other`: a text field and two new values.
    `action`: the route that the form is sent to, with the argument of the page's address.
    """

    address: Callable[[People], str]
    one: Callable[[People], tuple[str, str]] | None
    other: tuple[str, str, str]
    action: str = ""


def _page(view: str, row: Callable[[People], object]) -> Callable[[People], str]:
    return lambda people: reverse(view, args=[row(people)])


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


def _schedule(people: People) -> UUID:
    spec = ScheduleSpec.parse({"name": "nightly", "cron": "@daily", "job": SPEC.document()})
    return schedules.create(spec=spec, tenant=people.lab, user=people.alice, now=clock.now()).uid


def _alert_rule(people: People) -> UUID:
    spec = AlertRuleSpec.parse({"name": "busy", "measure": "jobs_waiting", "threshold": 9})
    return alerts.create(spec=spec, tenant=None, user=people.ada, now=clock.now())[0].uid


def _report(people: People) -> UUID:
    spec = ReportSpec.parse({"name": "use", "sections": ["classes"], "recipients": ["ada"]})
    return reports.create(spec=spec, user=people.ada, now=clock.now()).uid


def _gallery(people: People) -> str:
    values = {"title": "Usual", "description": "", "spec": SPEC, "fields": [], "tenant": people.lab}
    template = gallery.publish(**values, user=people.alice, now=clock.now())
    return f"{reverse('gallery:publish')}?template={template.uid}"


def _job_template(people: People) -> UUID:
    return flows.create_template(spec=SPEC, tenant=people.lab, user=people.alice, now=clock.now()).uid


def _manifest(command: str) -> str:
    return formats.dump_template(JobSpec.parse({**DOCUMENT, "name": f"{command}-job"})).replace("\n", "\r\n")


def _policy(note: str) -> str:
    return f"actions: allocate\r\ntiers:\r\n- plugins: [{{name: gang}}]\r\n# {note}"


SPEC = JobSpec.parse(DOCUMENT)
DESCRIPTION = ("description", "One\r\nline", "Another")
CONFIGS = ('{\r\n  "nodes": []\r\n}', '{\r\n  "seed": 3,\r\n  "nodes": []\r\n}')
PAGES = {
    "queue": EditPage(_page("queues:edit", lambda people: people.queue.name), lambda _: ("weight", "3"), DESCRIPTION),
    "federated queue": EditPage(
        _page("federated_queues:edit", _federated_queue), lambda people: ("tenants", str(people.lab.pk)), DESCRIPTION
    ),
    "tenant": EditPage(_page("tenancy:edit", lambda people: people.lab.slug), lambda _: ("name", "New"), DESCRIPTION),
    "retention": EditPage(
        _page("tenancy:detail", lambda people: people.lab.slug),
        lambda _: ("log_days", "7"),
        ("history_days", "400", "500"),
        "tenancy:set_retention",
    ),
    "quota": EditPage(
        _page("tenancy:quotas", lambda people: people.lab.slug),
        lambda _: ("jobs", "9"),
        ("resources", "cpu=64", "cpu=32, memory=1Gi"),
    ),
    "department": EditPage(_page("departments:edit", _department), lambda _: ("heads", "alice, bob"), DESCRIPTION),
    "priority class": EditPage(_page("priorities:edit", _priority_class), lambda _: ("is_default", "on"), DESCRIPTION),
    "environment": EditPage(
        _page("clusters:edit_environment", _environment), lambda _: ("requirements", "a"), DESCRIPTION
    ),
    "person": EditPage(
        _page("accounts:edit", lambda people: people.bob.pk),
        lambda _: ("username", "rob"),
        ("display_name", "Rob", "Robert"),
    ),
    "profile": EditPage(lambda _: reverse("accounts:profile"), None, ("display_name", "Ada L.", "Ada Lovelace")),
    "cluster": EditPage(
        _page("clusters:edit", lambda people: people.cluster.name),
        lambda _: ("is_paused", "on"),
        ("config", *CONFIGS),
    ),
    "policy": EditPage(
        lambda _: f"{reverse('clusters:policy')}?cluster=sim", None, ("text", _policy("one"), _policy("two"))
    ),
    "schedule": EditPage(
        _page("schedules:edit", _schedule), lambda _: ("suspended", "on"), ("cron", "@weekly", "@monthly")
    ),
    "gallery": EditPage(_gallery, lambda _: ("open-3", "on"), DESCRIPTION),
    "job template": EditPage(
        _page("flows:edit_template", _job_template), None, ("text", _manifest("first"), _manifest("second"))
    ),
    "notification settings": EditPage(
        lambda _: reverse("notifications:settings"),
        lambda _: ("moments", "failed"),
        ("mail", "ada@example.org", "ada@lab.example"),
    ),
    "alert rule": EditPage(
        _page("alerts:edit", _alert_rule), lambda _: ("severity", "critical"), ("name", "very busy", "too busy")
    ),
    "report": EditPage(
        _page("reports:edit", _report), lambda _: ("recipients", ""), ("name", "weekly use", "use of a week")
    ),
    "idle rule": EditPage(
        lambda _: reverse("idleness:platform"), lambda _: ("ends_sessions", "on"), ("idle_minutes", "60", "90")
    ),
    "job notifications": EditPage(
        _page("notifications:job", lambda people: people.submit().uid),
        lambda _: ("moments", "failed"),
        ("long_wait_minutes", "7", "9"),
    ),
}


@dataclass(frozen=True, slots=True)
class Editor:
    """A browser of Ada's with an edit page."""

    browser: Client
    page: str
    action: str

    @classmethod
    def of(cls, page: EditPage, people: People, browser: Client) -> "Editor":
        """The page of a new row."""
        address = page.address(people)
        action = reverse(page.action, kwargs=resolve(address).kwargs) if page.action else address
        return cls(browser, address, action)

    def open(self) -> dict[str, list[str]]:
        return form_fields(self.browser.get(self.page).content.decode())

    def save(self, fields: dict[str, Any]) -> Any:
        return self.browser.post(self.action, fields)


def _edit_forms(base: type[EditForm] = EditForm) -> set[type[EditForm]]:
    """The forms that pages use: the mixins alone are none."""
    found = {form for one in base.__subclasses__() for form in _edit_forms(one)}
    return found or {base}


def test_every_edit_form_is_tested() -> None:
    for _page in registry.load_all():
        pass  # a form is known once its module is imported
    assert len(_edit_forms()) == len(PAGES) + len(SINGLE)


NEW = {
    *("batches/views.sweep", "clusters/views.create", "flows/template_views.create", "flows/template_views.detail"),
    *("flows/views.start", "gallery/views._publish_form", "gallery/views.template"),
    *("invitations/import_views.import_people", "invitations/views.sign_up", "job_forms/submission_form.__init__"),
    *("policy_lab/forms.__init__", "reports/edit.create"),
    *("schedules/views.create", "submit/options.__init__", "submit/views._draft_page", "submit/views._manifest_form"),
    "tenancy/views.create",
}
"""They suggest values for something new."""
REVISIONS = {"files/edit_views.edit", "jobs/priority_form.__init__", "jobs/size_form.__init__"}
"""They send the job's revision, or the SHA-256 of the file, which the service compares."""
SINGLE = {"FileLimitForm"}
"""They have one field, so there is nothing to merge; a change by somebody else is a conflict as in all others."""


def prefilled(source: str, edits: Collection[str]) -> set[str]:
    """The functions that fill a form with initial values, except for these forms."""
    found = set()
    for function in ast.walk(ast.parse(source)):
        for call in ast.walk(function) if isinstance(function, ast.FunctionDef) else ():
            if isinstance(call, ast.Call) and {word.arg for word in call.keywords} & {"initial", "instance"}:
                names = {ast.unparse(part).rpartition(".")[2] for part in (call.func, *call.args)} - {*edits}
                if ast.unparse(call.func) == "super().__init__" or any(name.endswith("Form") for name in names):
                    found.add(function.name)
    return found


def test_forms_with_stored_values_merge() -> None:
    """A new page that edits something belongs in PAGES; one that creates something, in NEW."""
    edits, root = {form.__name__ for form in _edit_forms()}, Path(pages.__file__).parent
    found = {
        f"{path.relative_to(root).with_suffix('')}.{name}"
        for path in root.rglob("*.py")
        if path.name != "edit_form.py"
        for name in prefilled(path.read_text(), edits)
    }
    assert found == NEW | REVISIONS


@pytest.mark.parametrize(
    ("line", "is_found"),
    [
        ("NoteForm(request.POST or None, instance=note)", True),
        ("partial(forms.NoteForm, initial={})", True),
        ("NoteForm(request.POST)", False),
        ("forms.NoteChangeForm(instance=note)", False),
    ],
)
def test_form_without_a_merge_is_found(line: str, is_found: bool) -> None:
    assert prefilled(f"def edit(request):\n    form = {line}", {"NoteChangeForm"}) == ({"edit"} if is_found else set())


@pytest.mark.parametrize("page", [pytest.param(page, id=name) for name, page in PAGES.items() if page.one])
def test_fields_that_a_person_left_alone_keep_what_others_saved(page: EditPage, people: People, as_: As) -> None:
    assert page.one
    editor, (name, value), (other, text, _) = Editor.of(page, people, as_(people.ada)), page.one(people), page.other
    first, second = editor.open(), editor.open()
    assert editor.save({**first, name: value}).status_code == 302
    saved = editor.open()
    assert saved[name] == [value] != first.get(name)
    assert editor.save({**second, other: text}).status_code == 302
    found = editor.open()
    assert (found[name], found[other]) == ([value], [text])


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_change_of_the_same_field_is_reported_and_then_saved(page: EditPage, people: People, as_: As) -> None:
    editor, (name, text, again) = Editor.of(page, people, as_(people.ada)), page.other
    first, second = editor.open(), editor.open()
    assert editor.save({**first, name: text}).status_code == 302
    answer = editor.save({**second, name: again})
    content = answer.content.decode()
    assert (answer.status_code, CONFLICT in unescape(content), form_fields(content)[name]) == (200, True, [again])
    assert editor.open()[name] == [text]
    assert editor.save(form_fields(content)).status_code == 302
    assert editor.open()[name] == [again]


def test_change_at_the_same_moment_is_refused(people: People) -> None:
    """Somebody else saves between the validation of a form and the lock of its row."""
    form = TenantChangeForm({"name": "Mine", "description": "", "is_active": "on"}, instance=people.lab)
    assert form.is_valid()
    type(people.lab).objects.filter(pk=people.lab.pk).update(description="Theirs")
    with pytest.raises(Refused, match="at the same moment"), form.saving():
        tenancy.change(people.lab, form.cleaned_data, **_acts())
    people.lab.refresh_from_db()
    assert (people.lab.name, people.lab.description) == ("Lab", "Theirs")


def test_uploaded_manifest_is_compared_like_a_typed_one(people: People, as_: As) -> None:
    editor = Editor.of(PAGES["job template"], people, as_(people.ada))
    first, second = editor.open(), editor.open()
    assert editor.save({**first, "text": _manifest("first")}).status_code == 302
    upload = SimpleUploadedFile("job.yaml", _manifest("second").encode())
    content = editor.save({**second, "upload": upload}).content.decode()
    assert (CONFLICT in unescape(content), form_fields(content)["text"]) == (True, [_manifest("second")])
    assert editor.save(form_fields(content)).status_code == 302
    assert editor.open()["text"] == [_manifest("second")]


def test_quota_of_another_owner_is_read_before_it_is_replaced(people: People, as_: As) -> None:
    editor = Editor.of(PAGES["quota"], people, as_(people.ada))
    editor.save({"whose": "@bob", "jobs": "2", "sessions": "1"})
    content = editor.save({**editor.open(), "whose": "@bob", "jobs": "5"}).content.decode()
    assert "Unchanged fields now show the limits of this owner." in content
    assert Quota.objects.get().jobs == 2
    fields = form_fields(content)
    assert (fields["whose"], fields["jobs"], fields["sessions"]) == (["@bob"], ["5"], ["1"])
    assert editor.save(fields).status_code == 302
    quota = Quota.objects.get()
    assert (quota.of, quota.jobs, quota.sessions) == ("one", 5, 1)
