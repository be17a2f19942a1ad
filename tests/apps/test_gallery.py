"""The gallery: admins publish templates, users fill in open fields, and a job records its template version."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people

from hekla.apps.accounts.models import User
from hekla.apps.event_log import selectors as event_log
from hekla.apps.gallery import selectors, services
from hekla.apps.gallery.models import Template
from hekla.apps.jobs.models import Job
from hekla.apps.presets import services as presets
from hekla.apps.tenancy.models import Tenant
from hekla.domain.errors import Forbidden, Invalid, Refused
from hekla.domain.jobspec import JobSpec
from hekla.lib import clock
from hekla.pages.submit.presets import INCLUDED

__all__ = ["db", "people", "shared_people"]

As = Callable[[User], Client]
TASK = {"name": "main", "command": ["true"], "resources": {"cpu": "1"}, "env": {"LR": "0.1"}}
SPEC = JobSpec.parse({"name": "base", "tasks": [TASK]})
OPEN = [{"place": "tasks.main.env.LR", "choices": ["0.1", "0.2"]}, {"place": "tasks.main.replicas", "most": "3"}]


def publish(user: User, tenant: Tenant | None, **more: Any) -> Template:
    card = {"title": "Fine-tune", "description": "Ours", "spec": SPEC, "fields": OPEN, "tenant": tenant}
    return services.publish(**{**card, **more}, user=user, now=clock.now())


def submit_from(people: People, template: Template, **values: str) -> Job:
    request = {"name": "mine", "values": values, "tenant": people.lab, "user": people.alice}
    return services.begin(template, **request, now=clock.now())


def test_only_admins_publish_in_their_scope(people: People) -> None:
    for user, tenant in ((people.bob, people.lab), (people.alice, None), (people.bob, None)):
        with pytest.raises(Forbidden):
            publish(user, tenant)
    ours, for_all = publish(people.alice, people.lab), publish(people.ada, None)
    assert list(selectors.visible_to(people.charlie)) == [for_all]
    assert list(selectors.visible_to(people.bob)) == [for_all, ours]
    with pytest.raises(Forbidden):
        publish(people.alice, people.lab, template=for_all)


def test_job_records_its_template_version(people: People, as_: As) -> None:
    template = publish(people.alice, people.lab)
    publish(people.alice, people.lab, template=template, title="Finer")
    template.refresh_from_db()
    page = as_(people.alice).get(reverse("gallery:template", args=[template.uid])).context["form"]
    assert [field.label for field in page.visible_fields()] == ["Job name", "main · LR", "main · Replicas"]
    sent = {"name": "mine", "version": "2", "field-tasks.main.env.LR": "0.2", "field-tasks.main.replicas": "2"}
    answer = as_(people.alice).post(reverse("gallery:template", args=[template.uid]), sent)
    job = Job.objects.get()
    assert answer["Location"] == reverse("jobs:detail", args=[job.uid])
    assert (job.spec["tasks"][0]["env"], job.replicas) == ({"LR": "0.2"}, 2)
    use = selectors.use_of(job)
    assert use is not None
    assert (use.version.template, use.version.number) == (template, 2)
    assert "Template Finer, version 2" in as_(people.bob).get(answer["Location"]).content.decode()
    assert "JobCreatedFromTemplate" in [event.kind for event in event_log.about(f"job:{job.uid}")]


def test_locked_fields_cannot_be_changed(people: People, as_: As) -> None:
    template = publish(people.alice, people.lab)
    with pytest.raises(Invalid):
        submit_from(people, template, queue="other")
    address = reverse("gallery:template", args=[template.uid])
    sent = {"name": "mine", "version": "1", "field-tasks.main.env.LR": "0.1", "field-tasks.main.replicas": "1"}
    as_(people.alice).post(address, sent | {"field-priority": "9", "priority": "9", "rest": "{}"})
    assert Job.objects.get().priority == 0
    body = {"name": "second", "values": {"priority": "9"}}
    answer = as_(people.alice).post(f"/api/v1/gallery/{template.uid}/jobs", body, content_type="application/json")
    assert answer.status_code in (400, 422)
    assert "locked" in answer.content.decode()


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("field-tasks.main.replicas", "4", "at most 3"),
        ("field-tasks.main.replicas", "", "not an amount"),
        ("field-tasks.main.env.LR", "0.3", "Select a valid choice"),
        ("name", "No name", "not a valid name"),
    ],
)
def test_errors_are_at_their_field(people: People, as_: As, field: str, value: str, message: str) -> None:
    template = publish(people.alice, people.lab)
    sent = {"name": "mine", "version": "1", "field-tasks.main.env.LR": "0.2", "field-tasks.main.replicas": "2"}
    page = as_(people.alice).post(reverse("gallery:template", args=[template.uid]), sent | {field: value})
    assert not Job.objects.exists()
    assert f'href="#id_{field}"' in page.content.decode()
    assert message in page.content.decode()


def test_changed_template_needs_a_review_and_keeps_the_input(people: People, as_: As) -> None:
    template = publish(people.alice, people.lab)
    publish(people.alice, people.lab, template=template)
    sent = {"name": "mine", "version": "1", "field-tasks.main.env.LR": "0.2", "field-tasks.main.replicas": "2"}
    address = reverse("gallery:template", args=[template.uid])
    page = as_(people.alice).post(address, sent)
    assert "new version" in page.content.decode()
    again = {field.html_name: field.value() for field in page.context["form"]}
    assert again == sent | {"version": 2}
    assert as_(people.alice).post(address, again).status_code == 302


def test_withdrawn_template_keeps_its_jobs(people: People, as_: As) -> None:
    template = publish(people.alice, people.lab)
    job = submit_from(people, template)
    as_(people.alice).post(reverse("gallery:withdraw", args=[template.uid]))
    assert as_(people.alice).get(reverse("gallery:template", args=[template.uid])).status_code == 404
    assert "Template Fine-tune" in as_(people.alice).get(reverse("jobs:detail", args=[job.uid])).content.decode()


def test_tenant_template_is_for_its_tenant_only(people: People) -> None:
    template = publish(people.alice, people.lab)
    with pytest.raises(Refused, match="for Lab only"):
        services.begin(template, name="x", values={}, tenant=people.other, user=people.ada, now=clock.now())


def test_preset_is_published_with_open_fields(people: People, as_: As) -> None:
    preset = presets.save(name="usual", spec=SPEC, user=people.alice, tenant=None, now=clock.now())
    alice, address = as_(people.alice), f"{reverse('gallery:publish')}?preset={preset.uid}"
    rows = alice.get(address).context["form"].rows()
    number = next(at for at, row in enumerate(rows) if row["place"] == "tasks.main.env.LR")
    sent = {"title": "Ours", f"open-{number}": "on", f"choices-{number}": "0.1 | 0.2"}
    page = alice.post(address, sent | {f"least-{number}": "many"}).content.decode()
    assert "are amounts" in page
    assert "0.1 | 0.2" in page
    alice.post(address, sent)
    template = Template.objects.get()
    assert selectors.latest(template).fields == [{"place": "tasks.main.env.LR", "choices": ["0.1", "0.2"]}]
    again = alice.get(f"{reverse('gallery:publish')}?template={template.uid}").context["form"]
    assert (again["title"].value(), again[f"choices-{number}"].value()) == ("Ours", "0.1 | 0.2")
    assert "Ours" in alice.get(reverse("gallery:list")).content.decode()


def test_gallery_lists_the_templates_of_each_scope(people: People, as_: As) -> None:
    by_alice = {"spec": SPEC, "user": people.alice, "now": clock.now()}
    presets.save(name="mine", tenant=None, **by_alice)
    presets.save(name="ours", tenant=people.lab, **by_alice)
    publish(people.alice, people.lab, title="Tuned")
    publish(people.ada, None, title="For all")

    def titles(user: User, **query: str) -> list[str]:
        return [card.title for card in as_(user).get(reverse("gallery:list"), query).context["templates"].rows]

    included = len(INCLUDED) + 1  # and a flow
    assert titles(people.alice)[:4] == ["mine", "ours", "Tuned", "For all"]
    assert (len(titles(people.alice)), len(titles(people.bob))) == (included + 4, included + 3)
    assert titles(people.charlie)[0] == "For all"
    assert titles(people.ada, scope="tenant") == []  # an admin sees them elsewhere
    assert titles(people.alice, scope="personal") == ["mine"]
    assert titles(people.alice, scope="tenant") == ["ours", "Tuned"]
    assert titles(people.alice, q="mpirun") == ["MPI: mpirun and ranks", "Horovod: ranks over MPI"]
    page = as_(people.alice).get(reverse("gallery:list"), {"q": "mpirun"})
    assert "The environment must provide: mpirun, mpi4py." in page.content.decode()
    assert 'href="?scope=tenant&amp;q=mpirun"' in page.content.decode()
    addresses = [card.address for card in page.context["templates"].rows] + [reverse("flows:start")]
    assert [as_(people.alice).get(address).status_code for address in addresses] == [200] * 3


def test_gallery_over_rest(people: People, as_: As) -> None:
    alice = as_(people.alice)
    body = {"title": "Ours", "tenant": "lab", "spec": SPEC.document(), "fields_open": OPEN}
    created = alice.post("/api/v1/gallery", body, content_type="application/json").json()
    assert [card["title"] for card in alice.get("/api/v1/gallery").json()["results"]] == ["Ours"]
    body = alice.get(f"/api/v1/gallery/{created['uid']}").json()
    assert (body["spec"], body["fields_open"][0]["choices"]) == (SPEC.document(), ["0.1", "0.2"])
    body = {"name": "sent", "values": {"tasks.main.replicas": "3"}, "version": 1}
    answer = alice.post(f"/api/v1/gallery/{created['uid']}/jobs", body, content_type="application/json")
    assert (answer.status_code, answer.json()["job"]["replicas"]) == (201, 3)
    assert alice.delete(f"/api/v1/gallery/{created['uid']}").status_code == 204
