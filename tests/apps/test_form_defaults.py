"""A framework, a preset or a manifest fills the submission form. Other fields stay, and Undo restores everything."""

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
from tests.apps.shared_people import db, people, shared_people
from tests.apps.test_submission import form_of, minimal_form, post_data
from tests.support.economy import contexts_only
from tests.support.examples import EVERY

from hekla.apps.accounts.models import User
from hekla.apps.jobs.models import Job
from hekla.apps.presets import services as presets
from hekla.apps.presets.models import Preset
from hekla.domain.jobspec import JobSpec
from hekla.lib import clock
from hekla.pages.job_forms.submission_form import InitialValues
from hekla.pages.submit.framework_defaults import apply_framework, differences
from hekla.pages.submit.presets import FRAMEWORKS, beginning

__all__ = ["db", "people", "shared_people"]

As = Callable[[User], Client]
MANIFEST = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: uploaded}
spec:
  tasks: [{name: main, replicas: 1, template: {spec: {containers: [{command: [echo, up]}]}}}]
"""
DRAFT = {
    "name": "mine", "shape": "distributed", "framework": "indexed", "priority": "7", "description": "why",
    "tasks-0-name": "worker", "tasks-0-command": "python mine.py", "tasks-0-cpu": "6", "tasks-0-gpus": "2",
    "tasks-0-env": "A=1", "tasks-0-image": "ours:1", "files-TOTAL_FORMS": "1", "files-0-name": "mine.py",
    "files-0-text": "print(1)", "notify-own": "on", "rest": '{"annotations": {"a": "b"}}', "secrets": "token: one",
}  # fmt: skip


def form_data(page: Any) -> dict[str, Any]:
    """What a browser sends for this page, with the hidden fields for Undo."""
    context = page.context
    sent = post_data(SimpleNamespace(job=context["form"], tasks=context["tasks"], files=context["files"])).dict()
    undo = context["filling"]
    sent["base_preset"] = context["base_preset"]
    return sent | ({"before": undo.document, "before-words": undo.words} if undo else {})


def spec_of_form(page: Any) -> JobSpec | None:
    data = QueryDict(mutable=True)
    data.update(form_data(page))
    return form_of(data, InitialValues()).spec()


def test_framework_fills_its_fields_and_keeps_the_input(people: People, as_: As) -> None:
    page = as_(people.alice).post(reverse("jobs:submit"), minimal_form(**DRAFT, do="tensorflow"))
    sent = form_data(page)
    for name in ("name", "priority", "description", "secrets"):
        assert sent[name] == DRAFT[name]
    assert (sent["framework"], sent["on_failure"], sent["tasks-TOTAL_FORMS"]) == ("tensorflow", "RestartJob", "2")
    assert (sent["tasks-0-name"], sent["tasks-0-cpu"], sent["tasks-0-gpus"]) == ("ps", "500m", "")
    worker = [sent[f"tasks-1-{field}"] for field in ("name", "command", "cpu", "gpus", "env", "image")]
    assert worker == ["worker", "python train.py", "6", "2", "A=1", "ours:1"]
    assert [sent[f"files-{number}-name"] for number in (0, 1)] == ["mine.py", "train.py"]
    assert json.loads(sent["rest"]) == {"annotations": {"a": "b"}}
    words = page.content.decode()
    assert page.context["filling"].words == (
        "Filled in from “TensorFlow: parameter server and workers”: Framework, "
        "When a pod fails, When a pod is evicted, Role (ps, worker), Command, train.py. "
        "Other fields are unchanged."
    )
    assert " required" not in words.split('name="upload"')[1].split(">")[0], "a submission needs no file"
    assert 'value="undo"' in words
    assert not Job.objects.exists()


def test_undo_restores_the_input_and_can_be_undone(people: People, as_: As) -> None:
    alice, invalid = as_(people.alice), DRAFT | {"tasks-0-cpu": "many", "tasks-0-command": "open 'quote"}
    filled = form_data(alice.post(reverse("jobs:submit"), minimal_form(**invalid, do="mpi"))) | {"name": "typed-since"}
    back = form_data(alice.post(reverse("jobs:submit"), filled | {"do": "undo"}))
    for name in invalid:
        if name not in ("rest", "notify-own"):
            assert back[name] == invalid[name], name
    again = form_data(alice.post(reverse("jobs:submit"), back | {"do": "undo"}))
    assert (again["name"], again["framework"], again["tasks-0-command"]) == (
        "typed-since",
        "mpi",
        "mpirun python train.py",
    )


def test_undo_survives_further_requests(people: People, as_: As) -> None:
    alice = as_(people.alice)
    filled = form_data(alice.post(reverse("jobs:submit"), minimal_form(**DRAFT, do="jax")))
    refused = alice.post(reverse("jobs:submit"), filled | {"tasks-0-cpu": "many"})
    assert "Undo" in refused.content.decode()
    text = alice.post(reverse("jobs:submit"), filled | {"do": "yaml"}).context
    sent = {"text": text["form"]["text"].value(), "before": text["filling"].document, "do": "undo"}
    assert form_data(alice.post(reverse("jobs:submit_yaml"), sent))["tasks-0-command"] == "python mine.py"


def test_left_draft_is_restored(people: People, as_: As) -> None:
    alice = as_(people.alice)
    draft_before = minimal_form(**DRAFT | {"tasks-0-cpu": "many"}, base_preset="jax")
    for draft, field in ((draft_before, "tasks-0-cpu"), ({"text": "name: [mine", "shape": "sweep"}, "text")):
        before = json.dumps({name: [value] for name, value in draft.items()})
        page = alice.post(reverse("jobs:submit"), {"do": "back", "before": before})
        words = page.content.decode()
        assert draft[field] in words
        assert 'value="undo"' not in words, "there is no earlier state to restore"
    for nonsense in ("", "no json"):
        answer = alice.post(reverse("jobs:submit"), {"do": "back", "before": nonsense})
        assert answer.headers["Location"] == reverse("jobs:submit")


def test_malformed_undo_data_is_ignored(people: People, as_: As) -> None:
    for before in ("", "no json", "[1]", '{"name": 5}', "[" * 5000):
        page = as_(people.alice).post(reverse("jobs:submit"), minimal_form(**DRAFT, before=before, do="undo"))
        assert page.status_code == 200


@pytest.mark.parametrize("framework", FRAMEWORKS, ids=lambda each: each.name)
def test_untouched_form_becomes_the_framework_default(people: People, as_: As, framework: Any) -> None:
    """By default each framework after one of the others, another one for the next."""
    alice, former = as_(people.alice), ("distributed", "torchrun", "ray")
    with contexts_only():
        default = spec_of_form(alice.get(reverse("jobs:submit"), {"preset": framework.name}))
        for before in former[FRAMEWORKS.index(framework) % EVERY :: EVERY]:
            context = alice.get(reverse("jobs:submit"), {"preset": before})
            page = alice.post(reverse("jobs:submit"), form_data(context) | {"do": framework.name})
            assert spec_of_form(page) == default


def test_edited_program_is_not_replaced() -> None:
    draft = InitialValues({"framework": "jax"}, [{"name": "worker"}], [{"name": "train.py", "text": "mine"}])
    assert apply_framework(draft, beginning("pytorch")).files == [{"name": "train.py", "text": "mine"}]


def test_new_role_inherits_from_a_removed_role() -> None:
    draft = InitialValues(
        {"shape": "distributed"}, [{"name": "main", "gpus": "8", "rest": {"node_selector": {"a": "b"}}}]
    )
    master, worker = apply_framework(draft, beginning("pytorch")).tasks
    assert (master["gpus"], worker["gpus"]) == (None, "8")
    assert (master["rest"], worker["rest"]) == ({}, {"node_selector": {"a": "b"}})


def test_other_plugins_are_kept() -> None:
    rest = {"plugins": {"env": [], "ssh": [], "pytorch": ["--nnodes=1:4"]}}
    draft = InitialValues({"framework": "pytorch", "rest": rest}, [{"name": "worker"}])
    assert apply_framework(draft, beginning("jax")).job["rest"] == {"plugins": {"env": [], "ssh": []}}
    first = apply_framework(draft, beginning("torchrun"))
    assert first.job["rest"]["plugins"]["pytorch"] == ["--master=worker", "--nnodes=1:2"]
    assert "plugins and their arguments" in differences(draft, first)


def test_malformed_rest_is_kept_and_refused_at_submission(people: People, as_: As) -> None:
    alice = as_(people.alice)
    page = alice.post(
        reverse("jobs:submit"), minimal_form(**DRAFT | {"rest": "no json", "tasks-0-rest": "[1]"}, do="mpi")
    )
    assert page.status_code == 200
    assert "damaged" in alice.post(reverse("jobs:submit"), form_data(page)).content.decode()


BIG = {"name": "worker", "replicas": 4, "command": ["python", "big.py"], "resources": {"cpu": "8", "memory": "9Gi"}}
LARGE: dict[str, Any] = {
    "name": "large", "queue": "default", "max_retry": 5, "annotations": {"a": "large"}, "files": {"big.py": "print(2)"},
    "plugins": {"svc": [], "indexed": []}, "tasks": [BIG | {"node_selector": {"zone": "a"}}],
}  # fmt: skip
PLAIN = {"name": "plain", "queue": "default", "plugins": {}, "tasks": [{"name": "main", "command": ["true"]}]}


def save_preset(user: User, spec: dict[str, Any]) -> Preset:
    return presets.save(name=spec["name"], spec=JobSpec.parse(spec), user=user, tenant=None, now=clock.now())


def choice(preset: Preset) -> dict[str, str]:
    return {"do": f"saved:{preset.uid}"}


def test_preset_fills_its_fields_and_keeps_the_input(people: People, as_: As) -> None:
    alice, large = as_(people.alice), save_preset(people.alice, LARGE)
    page = alice.post(reverse("jobs:submit"), minimal_form(**DRAFT, kind="training") | choice(large))
    sent = form_data(page)
    for name in ("name", "priority", "description", "secrets", "tasks-0-gpus", "tasks-0-env", "tasks-0-image"):
        assert sent[name] == DRAFT[name], name
    assert [sent[f"tasks-0-{field}"] for field in ("command", "cpu", "memory")] == ["python big.py", "8", "9Gi"]
    assert [sent[f"files-{number}-name"] for number in (0, 1)] == ["big.py", "mine.py"]
    assert json.loads(sent["rest"])["annotations"] == {"a": "large"}
    assert page.context["filling"].words == (
        "Filled in from “large”: Maximum restarts, annotations, plugins and their arguments, Replicas, "
        "Command, CPU, Memory, Node labels, big.py. Other fields are unchanged."
    )
    back = form_data(alice.post(reverse("jobs:submit"), sent | {"do": "undo"}))
    assert (back["tasks-0-command"], back["tasks-0-cpu"], back["name"]) == ("python mine.py", "6", "mine")
    assert not Job.objects.exists()


@pytest.mark.parametrize("before", ["single", "distributed", "debugging", "torchrun", "ray", "large", "plain"])
@pytest.mark.parametrize("spec", [LARGE, PLAIN], ids=["large", "plain"])
def test_untouched_form_becomes_the_job_of_the_preset(
    people: People, as_: As, before: str, spec: dict[str, Any]
) -> None:
    alice = as_(people.alice)
    one, other = save_preset(people.alice, spec), save_preset(people.alice, PLAIN if before == "plain" else LARGE)
    query = {"saved": str(other.uid)} if before in ("large", "plain") else {"preset": before}
    with contexts_only():
        page = alice.post(reverse("jobs:submit"), form_data(alice.get(reverse("jobs:submit"), query)) | choice(one))
        assert spec_of_form(page) == spec_of_form(alice.get(reverse("jobs:submit"), {"saved": str(one.uid)}))
    again = alice.post(reverse("jobs:submit"), form_data(page) | choice(one))
    assert "No change" in again.content.decode()


def test_second_preset_replaces_the_first_and_keeps_the_input(people: People, as_: As) -> None:
    alice, large, plain = as_(people.alice), save_preset(people.alice, LARGE), save_preset(people.alice, PLAIN)
    first = form_data(alice.post(reverse("jobs:submit"), form_data(alice.get(reverse("jobs:submit"))) | choice(large)))
    page = alice.post(reverse("jobs:submit"), first | {"description": "mine"} | choice(plain))
    job = spec_of_form(page)
    assert job is not None
    assert job.model_copy(update={"description": ""}) == JobSpec.parse(PLAIN | {"name": "plain-1"})
    assert job.description == "mine"


def test_preset_keeps_a_sweep(people: People, as_: As) -> None:
    alice, sweep = as_(people.alice), {"shape": "sweep", "sweep-parameters": "lr = 1, 2"}
    page = alice.post(reverse("jobs:submit"), minimal_form(**sweep) | choice(save_preset(people.alice, PLAIN)))
    assert page.context["shape"] == "sweep"
    assert page.context["beside"].parameters["parameters"].value() == "lr = 1, 2"


def test_preset_replaces_the_manifest_text_and_can_be_undone(people: People, as_: As) -> None:
    alice, draft = as_(people.alice), {"text": "# typed\nname: [mine", "secrets": "token: one"}
    page = alice.post(reverse("jobs:submit_yaml"), draft | choice(save_preset(people.alice, LARGE)))
    form = page.context["form"]
    assert "python big.py" in " ".join(form["text"].value().replace("- ", "").split())
    assert form["secrets"].value() == "token: one"
    assert "The form now has the job from “large”." in page.content.decode()
    sent = {"text": form["text"].value(), "before": page.context["filling"].document, "do": "undo"}
    back = alice.post(reverse("jobs:submit_yaml"), sent)
    assert back.context["form"]["text"].value() == draft["text"]


@pytest.mark.parametrize("route", ["jobs:submit", "jobs:submit_yaml"])
def test_unavailable_preset_changes_nothing(people: People, as_: As, route: str) -> None:
    other_preset = save_preset(people.bob, PLAIN)
    text = {"text": "name: [mine"} if route == "jobs:submit_yaml" else {}
    for do in (f"saved:{other_preset.uid}", "saved:none"):
        page = as_(people.alice).post(reverse(route), minimal_form(**DRAFT, **text, do=do))
        words = page.content.decode()
        assert "Unknown template." in words
        assert "plain-1" not in words
        assert (text.get("text") or "python mine.py") in words


def file(text: str | bytes, name: str = "job.yaml") -> SimpleUploadedFile:
    return SimpleUploadedFile(name, text.encode() if isinstance(text, str) else text)


def test_uploaded_manifest_replaces_the_draft_and_can_be_undone(people: People, as_: As) -> None:
    alice = as_(people.alice)
    page = alice.post(reverse("jobs:submit"), minimal_form(**DRAFT, do="upload") | {"upload": file(MANIFEST)})
    sent = form_data(page)
    assert "The form now has the job from “job.yaml”." in page.content.decode()
    assert (sent["name"], sent["tasks-0-command"], sent["priority"]) == ("uploaded", "echo up", "0")
    assert sent["secrets"] == DRAFT["secrets"], "this manifest format has no secrets"
    back = form_data(alice.post(reverse("jobs:submit"), sent | {"do": "undo"}))
    assert (back["name"], back["tasks-0-command"], back["priority"]) == ("mine", "python mine.py", "7")


def test_uploaded_manifest_replaces_the_text_verbatim(people: People, as_: As) -> None:
    alice, text = as_(people.alice), "# typed\nname: mine"
    commented = f"# ours\n{MANIFEST}"
    page = alice.post(reverse("jobs:submit_yaml"), {"text": text, "do": "upload", "upload": file(commented)})
    assert page.context["form"]["text"].value() == commented
    before = page.context["filling"].document
    back = alice.post(reverse("jobs:submit_yaml"), {"text": commented, "before": before, "do": "undo"})
    assert back.context["form"]["text"].value() == text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a: [", "upload"),
        (b"\x89PNG\x00\x01", "upload"),
        ("kind: Shoe\napiVersion: v1\n", "kubeflow.org"),
        ("x" * (1024 * 1024 + 1), "The limit is 1 MiB."),
        (None, "Choose a file."),
    ],
)
@pytest.mark.parametrize("route", ["jobs:submit", "jobs:submit_yaml"])
def test_refused_file_changes_nothing(people: People, as_: As, route: str, content: Any, message: str) -> None:
    text = {"text": "name: [typed"} if route == "jobs:submit_yaml" else {}
    sent = minimal_form(**DRAFT, **text, do="upload") | ({"upload": file(content)} if content is not None else {})
    page = as_(people.alice).post(reverse(route), sent)
    words = page.content.decode()
    assert 'href="#id_upload"' in words
    assert message in words.split('role="alert"')[1].split("</ul>")[0]
    assert 'value="undo"' not in words
    if text:
        assert page.context["form"]["text"].value() == "name: [typed"
    else:
        assert form_data(page)["tasks-0-command"] == "python mine.py"


def test_chosen_file_is_loaded_before_submission(people: People, as_: As) -> None:
    page = as_(people.alice).post(reverse("jobs:submit"), minimal_form(**DRAFT) | {"upload": file(MANIFEST)})
    assert page.context["form"]["name"].value() == "uploaded"
    assert not Job.objects.exists()
