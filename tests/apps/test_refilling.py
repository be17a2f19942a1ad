"""A framework, a preset or a manifest is taken into the draft on the page. What it leaves open stays; all is undone."""

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import QueryDict
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People
from tests.apps.test_submission import form_of, posted, typed

from hekla.apps.accounts.models import User
from hekla.apps.jobs.models import Job
from hekla.apps.presets import services as presets
from hekla.apps.presets.models import Preset
from hekla.domain.jobspec import JobSpec
from hekla.lib import clock
from hekla.pages.job_forms.submission_form import InitialValues
from hekla.pages.submit.framework_defaults import apply_framework, differences
from hekla.pages.submit.presets import FRAMEWORKS, beginning

As = Callable[[User], Client]
MANIFEST = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: uploaded}
spec:
  tasks: [{name: main, replicas: 1, template: {spec: {containers: [{command: [echo, up]}]}}}]
"""
MINE = {
    "name": "mine", "shape": "distributed", "framework": "indexed", "priority": "7", "description": "why",
    "tasks-0-name": "worker", "tasks-0-command": "python mine.py", "tasks-0-cpu": "6", "tasks-0-gpus": "2",
    "tasks-0-env": "A=1", "tasks-0-image": "ours:1", "files-TOTAL_FORMS": "1", "files-0-name": "mine.py",
    "files-0-text": "print(1)", "notify-own": "on", "rest": '{"annotations": {"a": "b"}}', "secrets": "token: one",
}  # fmt: skip


def sent_by(page: Any) -> dict[str, Any]:
    """What a browser sends for the form as the page shows it, with what the page carries for Undo."""
    shown = page.context
    sent = posted(SimpleNamespace(job=shown["form"], tasks=shown["tasks"], files=shown["files"])).dict()
    filling = shown["filling"]
    sent["base_preset"] = shown["base_preset"]
    return sent | ({"before": filling.document, "before-words": filling.words} if filling else {})


def job_of(page: Any) -> JobSpec | None:
    data = QueryDict(mutable=True)
    data.update(sent_by(page))
    return form_of(data, InitialValues()).spec()


def test_a_framework_fills_its_fields_and_leaves_what_was_typed(people: People, as_: As) -> None:
    page = as_(people.alice).post(reverse("jobs:submit"), typed(**MINE, do="tensorflow"))
    sent = sent_by(page)
    for name in ("name", "priority", "description", "secrets"):
        assert sent[name] == MINE[name]
    assert (sent["framework"], sent["restart"], sent["tasks-TOTAL_FORMS"]) == ("tensorflow", "on", "2")
    assert (sent["tasks-0-name"], sent["tasks-0-cpu"], sent["tasks-0-gpus"]) == ("ps", "500m", "")
    worker = [sent[f"tasks-1-{field}"] for field in ("name", "command", "cpu", "gpus", "env", "image")]
    assert worker == ["worker", "python train.py", "6", "2", "A=1", "ours:1"]
    assert [sent[f"files-{number}-name"] for number in (0, 1)] == ["mine.py", "train.py"]
    assert json.loads(sent["rest"]) == {"annotations": {"a": "b"}}
    words = page.content.decode()
    assert page.context["filling"].words == (
        "Filled in from “TensorFlow: parameter server and workers”: Framework, "
        "Restart the whole job when a pod fails or is evicted, Role (ps, worker), Command, train.py. "
        "Other fields are unchanged."
    )
    assert " required" not in words.split('name="upload"')[1].split(">")[0], "whoever submits needs no file"
    assert 'value="undo"' in words
    assert not Job.objects.exists()


def test_undo_brings_back_all_that_was_typed_and_can_be_undone_itself(people: People, as_: As) -> None:
    alice, wrong = as_(people.alice), MINE | {"tasks-0-cpu": "many", "tasks-0-command": "open 'quote"}
    filled = sent_by(alice.post(reverse("jobs:submit"), typed(**wrong, do="mpi"))) | {"name": "typed-since"}
    back = sent_by(alice.post(reverse("jobs:submit"), filled | {"do": "undo"}))
    for name in wrong:
        if name not in ("rest", "notify-own"):
            assert back[name] == wrong[name], name
    again = sent_by(alice.post(reverse("jobs:submit"), back | {"do": "undo"}))
    assert (again["name"], again["framework"], again["tasks-0-command"]) == (
        "typed-since",
        "mpi",
        "mpirun python train.py",
    )


def test_the_way_back_stays_while_one_goes_on_with_the_form(people: People, as_: As) -> None:
    alice = as_(people.alice)
    filled = sent_by(alice.post(reverse("jobs:submit"), typed(**MINE, do="jax")))
    refused = alice.post(reverse("jobs:submit"), filled | {"tasks-0-cpu": "many"})
    assert "Undo" in refused.content.decode()
    text = alice.post(reverse("jobs:submit"), filled | {"do": "yaml"}).context
    sent = {"text": text["form"]["text"].value(), "before": text["filling"].document, "do": "undo"}
    assert sent_by(alice.post(reverse("jobs:submit_yaml"), sent))["tasks-0-command"] == "python mine.py"


def test_a_draft_that_was_left_is_shown_as_it_was_left(people: People, as_: As) -> None:
    alice = as_(people.alice)
    left = typed(**MINE | {"tasks-0-cpu": "many"}, base_preset="jax")
    for draft, field in ((left, "tasks-0-cpu"), ({"text": "name: [mine", "shape": "sweep"}, "text")):
        before = json.dumps({name: [value] for name, value in draft.items()})
        page = alice.post(reverse("jobs:submit"), {"do": "back", "before": before})
        words = page.content.decode()
        assert draft[field] in words
        assert 'value="undo"' not in words, "there was nothing else on the page before"
    for nonsense in ("", "no json"):
        answer = alice.post(reverse("jobs:submit"), {"do": "back", "before": nonsense})
        assert answer.headers["Location"] == reverse("jobs:submit")


def test_what_is_carried_for_undo_may_be_any_nonsense(people: People, as_: As) -> None:
    for before in ("", "no json", "[1]", '{"name": 5}', "[" * 5000):
        page = as_(people.alice).post(reverse("jobs:submit"), typed(**MINE, before=before, do="undo"))
        assert page.status_code == 200


@pytest.mark.parametrize("framework", FRAMEWORKS, ids=lambda each: each.name)
def test_an_untouched_form_becomes_what_the_framework_begins_with(people: People, as_: As, framework: Any) -> None:
    alice = as_(people.alice)
    for before in ("distributed", "torchrun", "ray"):
        shown = alice.get(reverse("jobs:submit"), {"preset": before})
        page = alice.post(reverse("jobs:submit"), sent_by(shown) | {"do": framework.name})
        assert job_of(page) == job_of(alice.get(reverse("jobs:submit"), {"preset": framework.name}))


def test_a_program_that_was_written_by_hand_is_not_replaced() -> None:
    draft = InitialValues({"framework": "jax"}, [{"name": "worker"}], [{"name": "train.py", "text": "mine"}])
    assert apply_framework(draft, beginning("pytorch")).files == [{"name": "train.py", "text": "mine"}]


def test_a_role_without_a_namesake_takes_the_place_of_one_that_goes() -> None:
    draft = InitialValues(
        {"shape": "distributed"}, [{"name": "main", "gpus": "8", "rest": {"node_selector": {"a": "b"}}}]
    )
    master, worker = apply_framework(draft, beginning("pytorch")).tasks
    assert (master["gpus"], worker["gpus"]) == (None, "8")
    assert (master["rest"], worker["rest"]) == ({}, {"node_selector": {"a": "b"}})


def test_plugins_that_are_no_framework_stay() -> None:
    rest = {"plugins": {"env": [], "ssh": [], "pytorch": ["--nnodes=1:4"]}}
    draft = InitialValues({"framework": "pytorch", "rest": rest}, [{"name": "worker"}])
    assert apply_framework(draft, beginning("jax")).job["rest"] == {"plugins": {"env": [], "ssh": []}}
    first = apply_framework(draft, beginning("torchrun"))
    assert first.job["rest"]["plugins"]["pytorch"] == ["--master=worker", "--nnodes=1:2"]
    assert "plugins and their arguments" in differences(draft, first)


def test_a_damaged_rest_stays_damaged_and_is_refused_when_it_is_sent(people: People, as_: As) -> None:
    alice = as_(people.alice)
    page = alice.post(reverse("jobs:submit"), typed(**MINE | {"rest": "no json", "tasks-0-rest": "[1]"}, do="mpi"))
    assert page.status_code == 200
    assert "damaged" in alice.post(reverse("jobs:submit"), sent_by(page)).content.decode()


BIG = {"name": "worker", "replicas": 4, "command": ["python", "big.py"], "resources": {"cpu": "8", "memory": "9Gi"}}
LARGE: dict[str, Any] = {
    "name": "large", "queue": "default", "max_retry": 5, "annotations": {"a": "large"}, "files": {"big.py": "print(2)"},
    "plugins": {"svc": [], "indexed": []}, "tasks": [BIG | {"node_selector": {"zone": "a"}}],
}  # fmt: skip
PLAIN = {"name": "plain", "queue": "default", "plugins": {}, "tasks": [{"name": "main", "command": ["true"]}]}


def kept(user: User, spec: dict[str, Any]) -> Preset:
    return presets.save(name=spec["name"], spec=JobSpec.parse(spec), user=user, tenant=None, now=clock.now())


def choice(preset: Preset) -> dict[str, str]:
    return {"do": f"saved:{preset.uid}"}


def test_a_preset_fills_what_it_says_and_leaves_what_was_typed(people: People, as_: As) -> None:
    alice, large = as_(people.alice), kept(people.alice, LARGE)
    page = alice.post(reverse("jobs:submit"), typed(**MINE, kind="training") | choice(large))
    sent = sent_by(page)
    for name in ("name", "priority", "description", "secrets", "tasks-0-gpus", "tasks-0-env", "tasks-0-image"):
        assert sent[name] == MINE[name], name
    assert [sent[f"tasks-0-{field}"] for field in ("command", "cpu", "memory")] == ["python big.py", "8", "9Gi"]
    assert [sent[f"files-{number}-name"] for number in (0, 1)] == ["big.py", "mine.py"]
    assert json.loads(sent["rest"])["annotations"] == {"a": "large"}
    assert page.context["filling"].words == (
        "Filled in from “large”: Maximum restarts, annotations, plugins and their arguments, Replicas, "
        "Command, CPU, Memory, node selector, big.py. Other fields are unchanged."
    )
    back = sent_by(alice.post(reverse("jobs:submit"), sent | {"do": "undo"}))
    assert (back["tasks-0-command"], back["tasks-0-cpu"], back["name"]) == ("python mine.py", "6", "mine")
    assert not Job.objects.exists()


@pytest.mark.parametrize("before", ["single", "distributed", "debugging", "torchrun", "ray", "large", "plain"])
@pytest.mark.parametrize("spec", [LARGE, PLAIN], ids=["large", "plain"])
def test_an_untouched_form_becomes_the_job_of_the_preset(
    people: People, as_: As, before: str, spec: dict[str, Any]
) -> None:
    alice = as_(people.alice)
    one, other = kept(people.alice, spec), kept(people.alice, PLAIN if before == "plain" else LARGE)
    begins = {"saved": str(other.uid)} if before in ("large", "plain") else {"preset": before}
    page = alice.post(reverse("jobs:submit"), sent_by(alice.get(reverse("jobs:submit"), begins)) | choice(one))
    assert job_of(page) == job_of(alice.get(reverse("jobs:submit"), {"saved": str(one.uid)}))
    again = alice.post(reverse("jobs:submit"), sent_by(page) | choice(one))
    assert "No change" in again.content.decode()


def test_one_preset_after_another_leaves_nothing_of_the_first_but_what_was_typed(people: People, as_: As) -> None:
    alice, large, plain = as_(people.alice), kept(people.alice, LARGE), kept(people.alice, PLAIN)
    first = sent_by(alice.post(reverse("jobs:submit"), sent_by(alice.get(reverse("jobs:submit"))) | choice(large)))
    page = alice.post(reverse("jobs:submit"), first | {"description": "mine"} | choice(plain))
    job = job_of(page)
    assert job is not None
    assert job.model_copy(update={"description": ""}) == JobSpec.parse(PLAIN | {"name": "plain-1"})
    assert job.description == "mine"


def test_a_sweep_stays_one_whatever_preset_fills_it(people: People, as_: As) -> None:
    alice, sweep = as_(people.alice), {"shape": "sweep", "sweep-parameters": "lr = 1, 2"}
    page = alice.post(reverse("jobs:submit"), typed(**sweep) | choice(kept(people.alice, PLAIN)))
    assert page.context["shape"] == "sweep"
    assert page.context["beside"].parameters["parameters"].value() == "lr = 1, 2"


def test_a_preset_takes_the_place_of_the_text_and_is_undone(people: People, as_: As) -> None:
    alice, asked = as_(people.alice), {"text": "# typed\nname: [mine", "secrets": "token: one"}
    page = alice.post(reverse("jobs:submit_yaml"), asked | choice(kept(people.alice, LARGE)))
    form = page.context["form"]
    assert "python big.py" in " ".join(form["text"].value().replace("- ", "").split())
    assert form["secrets"].value() == "token: one"
    assert "The form now has the job from “large”." in page.content.decode()
    sent = {"text": form["text"].value(), "before": page.context["filling"].document, "do": "undo"}
    back = alice.post(reverse("jobs:submit_yaml"), sent)
    assert back.context["form"]["text"].value() == asked["text"]


@pytest.mark.parametrize("route", ["jobs:submit", "jobs:submit_yaml"])
def test_a_preset_that_is_gone_or_anothers_leaves_the_draft_as_it_was(people: People, as_: As, route: str) -> None:
    theirs = kept(people.bob, PLAIN)
    text = {"text": "name: [mine"} if route == "jobs:submit_yaml" else {}
    for do in (f"saved:{theirs.uid}", "saved:none"):
        page = as_(people.alice).post(reverse(route), typed(**MINE, **text, do=do))
        words = page.content.decode()
        assert "Unknown preset." in words
        assert "plain-1" not in words
        assert (text.get("text") or "python mine.py") in words


def file(text: str | bytes, name: str = "job.yaml") -> SimpleUploadedFile:
    return SimpleUploadedFile(name, text.encode() if isinstance(text, str) else text)


def test_a_manifest_takes_the_place_of_the_draft_and_is_undone(people: People, as_: As) -> None:
    alice = as_(people.alice)
    page = alice.post(reverse("jobs:submit"), typed(**MINE, do="upload") | {"upload": file(MANIFEST)})
    sent = sent_by(page)
    assert "The form now has the job from “job.yaml”." in page.content.decode()
    assert (sent["name"], sent["tasks-0-command"], sent["priority"]) == ("uploaded", "echo up", "0")
    assert sent["secrets"] == MINE["secrets"], "a manifest of this kind says nothing of secrets"
    back = sent_by(alice.post(reverse("jobs:submit"), sent | {"do": "undo"}))
    assert (back["name"], back["tasks-0-command"], back["priority"]) == ("mine", "python mine.py", "7")


def test_a_manifest_takes_the_place_of_the_text_word_by_word(people: People, as_: As) -> None:
    alice, text = as_(people.alice), "# typed\nname: mine"
    commented = f"# ours\n{MANIFEST}"
    page = alice.post(reverse("jobs:submit_yaml"), {"text": text, "do": "upload", "upload": file(commented)})
    assert page.context["form"]["text"].value() == commented
    before = page.context["filling"].document
    back = alice.post(reverse("jobs:submit_yaml"), {"text": commented, "before": before, "do": "undo"})
    assert back.context["form"]["text"].value() == text


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("a: [", "upload"),
        (b"\x89PNG\x00\x01", "upload"),
        ("kind: Shoe\napiVersion: v1\n", "kubeflow.org"),
        ("x" * (1024 * 1024 + 1), "The limit is 1 MiB."),
        (None, "Choose a file."),
    ],
)
@pytest.mark.parametrize("route", ["jobs:submit", "jobs:submit_yaml"])
def test_a_refused_file_leaves_the_draft_as_it_was(
    people: People, as_: As, route: str, content: Any, says: str
) -> None:
    text = {"text": "name: [typed"} if route == "jobs:submit_yaml" else {}
    sent = typed(**MINE, **text, do="upload") | ({"upload": file(content)} if content is not None else {})
    page = as_(people.alice).post(reverse(route), sent)
    words = page.content.decode()
    assert 'href="#id_upload"' in words
    assert says in words.split('role="alert"')[1].split("</ul>")[0]
    assert 'value="undo"' not in words
    if text:
        assert page.context["form"]["text"].value() == "name: [typed"
    else:
        assert sent_by(page)["tasks-0-command"] == "python mine.py"


def test_a_file_that_was_chosen_is_filled_in_before_anything_is_sent(people: People, as_: As) -> None:
    page = as_(people.alice).post(reverse("jobs:submit"), typed(**MINE) | {"upload": file(MANIFEST)})
    assert page.context["form"]["name"].value() == "uploaded"
    assert not Job.objects.exists()
