"""A job as a form and as a manifest: the one is made from the other, and nothing that was said is lost between them."""

import json
import shlex
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from django.http import QueryDict
from django.test import Client
from django.urls import reverse
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.apps.conftest import People
from tests.domain.specs import DOCUMENTS

from hekla.apps.accounts.models import User
from hekla.apps.jobs import services as jobs
from hekla.apps.jobs.models import Job
from hekla.domain import formats
from hekla.domain.jobspec import JobSpec
from hekla.lib import clock
from hekla.pages.job_forms.submission_form import InitialValues, SubmissionForm
from hekla.pages.submit.form_mapping import filled
from hekla.pages.submit.presets import FRAMEWORKS, KINDS

As = Callable[[User], Client]
QUEUES = [("default", "default")]
MORE = st.fixed_dictionaries(
    {},
    optional={
        "annotations": st.dictionaries(
            st.sampled_from(["a", "hekla.io/priority", "sla-waiting-time"]), st.text("ab \n", max_size=5)
        ),
        "description": st.text("ab \r\n", max_size=9),
        "plugins": st.sampled_from(
            [
                {"env": [], "svc": [], "indexed": []},
                {"indexed": [], "svc": []},
                {"svc": ["--publish-not-ready-addresses=false"], "indexed": []},
                {"ssh": [], "env": []},
                {},
            ]
        ),
    },
)
SPECS = st.builds(lambda document, more: JobSpec.parse({**document, **more}), DOCUMENTS, MORE)


def form_of(data: QueryDict | None, first: InitialValues) -> SubmissionForm:
    return SubmissionForm(data, first, queues=QUEUES, environments=())


def posted(form: Any) -> QueryDict:
    """What a browser sends for the form as it stands: lines end in its own way, and one line has none."""
    data = QueryDict(mutable=True)
    bare = [form.job, form.tasks.management_form, form.files.management_form, *form.tasks, *form.files]
    for each in bare:
        for field in each:
            value = field.value()
            if field.widget_type == "checkbox":
                data.update({field.html_name: "on"} if value else {})
            else:
                data[field.html_name] = _as_sent("" if value is None else str(value), field.widget_type)
    return data


def _as_sent(text: str, widget: str) -> str:
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return lines.replace("\n", "\r\n") if widget == "textarea" else lines.replace("\n", "")


@settings(deadline=None)
@given(SPECS)
def test_a_job_that_is_shown_as_a_form_is_the_same_job(spec: JobSpec) -> None:
    form = form_of(posted(form_of(None, filled(spec))), InitialValues())
    assert (form.spec(), form.job.errors, form.tasks.errors) == (spec, {}, [{}] * len(spec.tasks))
    assert list(form.spec().plugins) == list(spec.plugins)  # type: ignore[union-attr]


@settings(deadline=None)
@given(SPECS)
def test_a_form_that_is_shown_as_yaml_comes_back_as_it_was(spec: JobSpec) -> None:
    sent = posted(form_of(None, filled(spec)))
    said = form_of(sent, InitialValues()).spec()
    assert said is not None
    back = formats.load(formats.dump_whole(said)).spec
    assert posted(form_of(None, filled(back))) == sent


@pytest.mark.parametrize("preset", [*KINDS, *FRAMEWORKS], ids=lambda preset: preset.name)
def test_what_a_form_begins_with_is_a_job(preset: Any) -> None:
    first = preset.first.copy()
    first.job.update(name="one", queue="default")
    form = form_of(posted(form_of(None, first)), InitialValues())
    spec = form.spec()
    assert spec is not None, (form.job.errors, form.tasks.errors)
    assert spec.remarks == ()
    assert filled(spec).job["shape"] == first.job.get("shape", "distributed")


def typed(**changes: str) -> dict[str, str]:
    """The smallest form that a page sends."""
    return {
        "name": "mine", "queue": "default", "tasks-TOTAL_FORMS": "1", "tasks-INITIAL_FORMS": "0",
        "files-TOTAL_FORMS": "0", "files-INITIAL_FORMS": "0", "tasks-0-name": "main", "tasks-0-replicas": "1",
        "tasks-0-command": "true",
    } | changes  # fmt: skip


REST = '{"annotations": {"sla-waiting-time": "1h"}}'


def test_the_form_is_shown_as_yaml_and_the_yaml_as_a_form(people: People, as_: As) -> None:
    alice, form = as_(people.alice), typed(rest=REST, description="one\r\ntwo", do="yaml")
    page = alice.post(reverse("jobs:submit"), form)
    text = page.context["form"]["text"].value()
    assert "sla-waiting-time: 1h" in text
    back = alice.post(reverse("jobs:submit_yaml"), {"text": text, "do": "form"})
    assert json.loads(back.context["form"]["rest"].value()) == json.loads(REST)
    assert back.context["also"] == ["annotations"]
    assert back.context["form"]["description"].value() == "one\ntwo"
    assert not Job.objects.exists()
    alice.post(reverse("jobs:submit"), form | {"do": ""})
    assert Job.objects.get().spec["annotations"] == {"sla-waiting-time": "1h"}


def test_what_cannot_be_shown_the_other_way_stays_with_its_problems(people: People, as_: As) -> None:
    alice = as_(people.alice)
    page = alice.post(reverse("jobs:submit"), typed(**{"tasks-0-replicas": "many", "do": "yaml"})).content.decode()
    assert 'value="many"' in page
    assert 'href="#id_tasks-0-replicas"' in page
    page = alice.post(reverse("jobs:submit_yaml"), {"text": "tasks: many", "do": "form"}).content.decode()
    assert "tasks: many" in page
    assert 'role="alert"' in page


def test_what_a_manifest_says_in_vain_is_told_when_it_becomes_a_form(people: People, as_: As) -> None:
    text = formats.dump(JobSpec.parse({"name": "one", "tasks": [{"name": "main", "command": ["true"]}]}))
    text = text.replace("name: one", "name: one\n  namespace: elsewhere", 1)
    page = as_(people.alice).post(reverse("jobs:submit_yaml"), {"text": text, "do": "form"}).content.decode()
    assert "metadata.namespace" in page


@pytest.mark.parametrize(
    "rest", ["no json", "[1]", '{"policies": 5}', '{"name": "other"}', "[" * 100_000, '{"annotations": {"a": 5}}']
)
def test_a_damaged_rest_is_refused_in_words(people: People, as_: As, rest: str) -> None:
    page = as_(people.alice).post(reverse("jobs:submit"), typed(rest=rest))
    assert page.status_code == 200
    assert not Job.objects.exists()
    assert 'role="alert"' in page.content.decode()


def test_an_untouched_form_of_each_kind_is_taken(people: People, as_: As) -> None:
    for kind in KINDS:
        page = as_(people.alice).get(reverse("jobs:submit"), {"preset": kind.name})
        forms = [page.context["form"], page.context["tasks"], page.context["files"]]
        sent = posted(SimpleNamespace(job=forms[0], tasks=forms[1], files=forms[2]))
        assert as_(people.alice).post(reverse("jobs:submit"), sent.dict()).status_code == 302
    assert [job.kind for job in Job.objects.order_by("pk")] == ["training", "training", "debugging"]


def test_a_queue_or_an_environment_that_is_not_there_is_not_swapped_for_another(people: People, as_: As) -> None:
    text = "name: one\nqueue: gone\ntasks: [{name: main, command: [sh], environment: lost}]"
    page = as_(people.alice).post(reverse("jobs:submit_yaml"), {"text": text, "do": "form"}).content.decode()
    assert '<option value="gone" selected>' in page
    assert '<option value="lost" selected>' in page


def test_secrets_go_along_between_form_and_yaml_and_are_kept_apart(people: People, as_: As) -> None:
    alice = as_(people.alice)
    secret = "token: |\n  one\n  two\n"
    page = alice.post(reverse("jobs:submit"), typed(secrets=secret, do="yaml"))
    assert page.context["form"]["secrets"].value() == secret
    page = alice.post(
        reverse("jobs:submit_yaml"), {"text": page.context["form"]["text"].value(), "secrets": secret, "do": "form"}
    )
    assert page.context["form"]["secrets"].value() == secret
    wrong = alice.post(reverse("jobs:submit"), typed(secrets="just words"))
    assert wrong.context["form"].errors.keys() == {"secrets"}


@pytest.mark.parametrize(
    ("changes", "field", "word"),
    [
        ({"tasks-0-env": "A=1\r\nA=2"}, "tasks-0-env", "set twice"),
        ({"tasks-0-command": ""}, "tasks-0-command", "required"),
        (
            {"files-TOTAL_FORMS": "2", "files-0-name": "a", "files-1-name": "a", "files-1-text": "x"},
            "files-1-name",
            "set twice",
        ),
    ],
)
def test_what_would_be_lost_is_refused(people: People, as_: As, changes: dict[str, str], field: str, word: str) -> None:
    page = as_(people.alice).post(reverse("jobs:submit"), typed(**changes)).content.decode()
    assert not Job.objects.exists()
    assert f'href="#id_{field}"' in page
    assert word in page


NEEDS_SECRET = {
    "plugins": {"openpai": []},
    "tasks": [{"name": "main", "command": ["sh", "-c", "echo <% $secrets.token %>"], "resources": {"cpu": "1"}}],
}


def test_a_copy_asks_again_for_secrets_and_shows_none(people: People, as_: As) -> None:
    spec = JobSpec.parse({"name": "one", **NEEDS_SECRET})
    now = clock.now()
    job = jobs.submit(spec=spec, tenant=people.lab, user=people.alice, now=now, secrets={"token": "s3cret"})
    for name in ("jobs:submit", "jobs:submit_yaml"):
        page = as_(people.alice).get(reverse(name), {"clone": str(job.uid)}).content.decode()
        assert "<code>token</code>" in page
        assert "s3cret" not in page
    form = typed(**{"tasks-0-command": shlex.join(spec.tasks[0].command), "rest": '{"plugins": {"openpai": []}}'})
    form["framework"] = "openpai"
    page = as_(people.alice).post(reverse("jobs:submit"), form).content.decode()
    assert "The secret “token” has no value" in page
    as_(people.alice).post(reverse("jobs:submit"), form | {"secrets": "token: other"})
    assert Job.objects.get(name="mine").spec["plugins"] == {"openpai": []}


@pytest.mark.parametrize("phase", ["pending", "running", "failed", "aborted", "completed"])
def test_a_job_of_any_phase_is_edited_and_run_again(people: People, as_: As, phase: str) -> None:
    job = people.submit("again", priority=5)
    Job.objects.filter(pk=job.pk).update(phase=phase)
    alice, address = as_(people.alice), f"{reverse('jobs:submit')}?clone={job.uid}"
    assert all(address in alice.get(page).content.decode() for page in (job_page(job), reverse("jobs:list")))
    shown = alice.get(address).context
    assert (shown["form"]["name"].value(), shown["form"]["priority"].value()) == ("again-1", 5)
    assert as_(people.charlie).get(address).status_code == 404


def job_page(job: Job) -> str:
    return reverse("jobs:detail", args=[job.uid])


SWEPT = {"shape": "sweep", "sweep-parameters": "lr = 0.1, 0.01\nwidth = 1, 2, 3", "sweep-how": "grid"}
SWEEPING = {"tasks-0-command": "train --lr {{ lr }} {{width}}", **SWEPT}


@pytest.mark.parametrize("kind", ["single", "distributed", "debugging", "sweep"])
def test_another_kind_of_job_keeps_all_that_was_typed(people: People, as_: As, kind: str) -> None:
    words = {"name": "MINE!", "tasks-0-command": "python mine.py 'open", "tasks-0-cpu": "many", "description": "Why"}
    words |= {"tasks-0-env": "A=1", "priority": "7", "shape": "single", "sweep-parameters": "lr = 1", "rest": REST}
    shown = as_(people.alice).post(reverse("jobs:submit"), typed(**words, do=kind)).context
    sent = posted(SimpleNamespace(job=shown["form"], tasks=shown["tasks"], files=shown["files"]))
    assert {name: sent[name] for name in words if name in sent and name not in ("shape", "rest")} == {
        name: text for name, text in words.items() if name not in ("shape", "rest", "sweep-parameters")
    }
    assert json.loads(sent["rest"]) == json.loads(REST)
    assert shown["beside"].parameters["parameters"].value() == "lr = 1"
    assert (shown["shape"], shown["form"].errors) == (kind, {})
    assert not Job.objects.exists()


def test_what_was_not_typed_is_what_the_other_kind_begins_with(people: People, as_: As) -> None:
    alice = as_(people.alice)
    shown = alice.get(reverse("jobs:submit"), {"preset": "single"}).context
    for kind in ("debugging", "sweep", "distributed", "single"):
        sent = posted(SimpleNamespace(job=shown["form"], tasks=shown["tasks"], files=shown["files"])).dict()
        shown = alice.post(reverse("jobs:submit"), sent | {"do": kind}).context
        begins = alice.get(reverse("jobs:submit"), {"preset": kind}).context
        assert posted(SimpleNamespace(**{n: begins[m] for n, m in PARTS})) == posted(
            SimpleNamespace(**{n: shown[m] for n, m in PARTS})
        )


PARTS = [("job", "form"), ("tasks", "tasks"), ("files", "files")]


def test_a_sweep_is_submitted_from_the_form_of_the_job(people: People, as_: As) -> None:
    alice, form = as_(people.alice), typed(**SWEEPING)
    looked = alice.post(reverse("jobs:submit"), form | {"do": "look"})
    assert "6 jobs would be submitted" in looked.content.decode()
    assert not Job.objects.exists()
    assert "<strong>6 jobs</strong>" in alice.post(reverse("jobs_what_if"), form).content.decode()
    page = alice.post(reverse("jobs:submit"), form, follow=True)
    assert page.redirect_chain[0][0].startswith("/batches/")
    assert Job.objects.get(name="mine-2").spec["tasks"][0]["command"] == ["train", "--lr", "0.1", "2"]
    assert Job.objects.count() == 6


def test_a_sweep_goes_to_yaml_and_back_and_is_submitted_from_there(people: People, as_: As) -> None:
    alice = as_(people.alice)
    page = alice.post(reverse("jobs:submit"), typed(**SWEEPING, do="yaml"))
    sent = {**SWEPT, "text": page.context["form"]["text"].value()}
    assert page.context["beside"].parameters["parameters"].value() == SWEPT["sweep-parameters"]
    back = alice.post(reverse("jobs:submit_yaml"), sent | {"do": "form"}).context
    assert (back["shape"], back["beside"].parameters["parameters"].value()) == ("sweep", SWEPT["sweep-parameters"])
    alice.post(reverse("jobs:submit_yaml"), sent)
    assert Job.objects.count() == 6


@pytest.mark.parametrize(
    ("changes", "field", "says"),
    [
        ({"sweep-parameters": ""}, "sweep-parameters", "required"),
        ({"sweep-parameters": "lr = 1"}, "tasks-0-command", "Unknown parameter"),
        ({"tasks-0-command": "train {{lr}}"}, "sweep-parameters", "No command or variable uses"),
        ({"sweep-how": "random"}, "sweep-count", "Enter the number of samples"),
        ({"tasks-0-cpu": "100"}, "tasks-0-cpu", "The largest node has"),
        ({"name": "a" * 50}, "name", "40"),
        ({"secrets": "token: one"}, "secrets", "one by one"),
    ],
)
def test_what_a_sweep_is_refused_for_stands_at_its_field(
    people: People, as_: As, changes: dict[str, str], field: str, says: str
) -> None:
    page = as_(people.alice).post(reverse("jobs:submit"), typed(**SWEEPING) | changes)
    words = page.content.decode()
    assert f'href="#id_{field}"' in words
    assert says in words.split('role="alert"')[1].split("</ul>")[0]
    assert not Job.objects.exists()


def test_an_empty_manifest_is_not_complained_about(people: People, as_: As) -> None:
    for text in ("", " \n"):
        box = as_(people.alice).post(reverse("jobs_what_if"), {"text": text}).content.decode()
        assert "Enter or paste a manifest" in box
