"""The submission form and the manifest of a job convert into each other without loss."""

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
from tests.apps.shared_people import db, people, shared_people
from tests.domain.specs import DOCUMENTS

from hekla.apps.accounts.models import User
from hekla.apps.clusters.models import Cluster, Node
from hekla.apps.jobs import services as jobs
from hekla.apps.jobs.facts import spec_of
from hekla.apps.jobs.models import Job
from hekla.domain import formats
from hekla.domain.autoscaling import Autoscaling
from hekla.domain.errors import Invalid
from hekla.domain.jobspec import JobSpec
from hekla.domain.network_topology import NetworkTopologySpec, TopologyMode
from hekla.lib import clock
from hekla.pages.job_forms.submission_form import InitialValues, SubmissionForm
from hekla.pages.submit.form_mapping import filled
from hekla.pages.submit.presets import INCLUDED, KINDS, SWEEP

__all__ = ["db", "people", "shared_people"]

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


def post_data(form: Any) -> QueryDict:
    """What a browser sends for this form: CRLF line ends in text areas, none in single-line fields."""
    data = QueryDict(mutable=True)
    bare = [form.job, form.tasks.management_form, form.files.management_form, *form.tasks, *form.files]
    if volumes := getattr(form, "volumes", None):
        bare += [volumes.management_form, *volumes]
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
def test_job_round_trips_through_the_form(spec: JobSpec) -> None:
    form = form_of(post_data(form_of(None, filled(spec))), InitialValues())
    assert (form.spec(), form.job.errors, form.tasks.errors) == (spec, {}, [{}] * len(spec.tasks))
    assert list(form.spec().plugins) == list(spec.plugins)  # type: ignore[union-attr]


def test_form_keeps_the_arguments_of_an_image_until_a_command_is_typed() -> None:
    spec = JobSpec.parse({"name": "a", "tasks": [{"name": "main", "image": "server:1", "args": ["--port", "80"]}]})
    sent = post_data(form_of(None, filled(spec)))
    form = form_of(sent, InitialValues())
    assert (form.spec(), form.also[-1]) == (spec, "main: arguments of the image's command")
    sent["tasks-0-command"] = "serve --fast"
    typed = form_of(sent, InitialValues()).spec()
    assert typed is not None
    assert (typed.tasks[0].command, typed.tasks[0].args) == (("serve", "--fast"), ())
    sent["tasks-0-command"], sent["tasks-0-image"] = "", ""
    assert form_of(sent, InitialValues()).spec() is None


def test_form_has_the_target_of_autoscaling_and_keeps_its_window() -> None:
    rule = {"max_replicas": 4, "gpu_utilization": 70, "stabilization_seconds": 60}
    task = {"name": "main", "command": ["train"], "resources": {"nvidia.com/gpu": "1"}, "autoscaling": rule}
    sent = post_data(form_of(None, filled(JobSpec.parse({"name": "a", "tasks": [task]}))))
    assert (sent["tasks-0-max_replicas"], sent["tasks-0-gpu_utilization"]) == ("4", "70")
    sent["tasks-0-gpu_utilization"] = "80"
    typed = form_of(sent, InitialValues()).spec()
    assert typed is not None
    assert typed.tasks[0].autoscaling == Autoscaling.model_validate({**rule, "gpu_utilization": 80})
    sent["tasks-0-gpu_utilization"] = ""
    half = form_of(sent, InitialValues())
    assert half.spec() is None
    assert [*half.tasks.forms[0].errors] == ["gpu_utilization"]
    sent["tasks-0-max_replicas"] = ""
    without = form_of(sent, InitialValues()).spec()
    assert without is not None
    assert without.tasks[0].autoscaling is None


@pytest.mark.parametrize(
    ("topology", "words"),
    [
        ({"mode": "soft"}, "as close together as possible"),
        ({"highest_tier_name": "rack"}, "within one “rack”"),
        ({"highest_tier_allowed": 2}, "within one hypernode of tier 2"),
        ({}, "within one hypernode"),
    ],
)
def test_closeness_is_offered_kept_and_shown(people: People, as_: As, topology: Any, words: str) -> None:
    alice = as_(people.alice)
    page = alice.get(reverse("jobs:submit")).content.decode()
    assert "Closeness in the network" not in page
    Cluster.objects.update(config={"topology_labels": ["hall", "rack"]})
    page = alice.get(reverse("jobs:submit")).content.decode()
    offers = ["anywhere", "as close together as possible", "within one “hall”", "within one “rack”"]
    assert [offer for offer in offers if offer in page] == offers
    job = people.submit(network_topology=topology)
    assert words in alice.get(reverse("jobs:detail", args=[job.uid]), {"tab": "settings"}).content.decode()
    sent = post_data(form_of(None, filled(spec_of(job))))
    assert form_of(sent, InitialValues()).spec() == spec_of(job)
    sent["closeness"] = "soft"
    changed = SubmissionForm(sent, InitialValues(), queues=QUEUES, environments=(), tiers=["hall", "rack"]).spec()
    assert changed is not None
    assert changed.network_topology == NetworkTopologySpec(mode=TopologyMode.SOFT)


@settings(deadline=None)
@given(SPECS)
def test_form_round_trips_through_yaml(spec: JobSpec) -> None:
    sent = post_data(form_of(None, filled(spec)))
    parsed = form_of(sent, InitialValues()).spec()
    assert parsed is not None
    back = formats.load(formats.dump_whole(parsed)).spec
    assert post_data(form_of(None, filled(back))) == sent


@pytest.mark.parametrize("preset", [each for each in INCLUDED if each is not SWEEP], ids=lambda preset: preset.name)
def test_presets_are_valid_jobs(preset: Any) -> None:
    first = preset.first.copy()
    first.job.update(name="one", queue="default")
    form = form_of(post_data(form_of(None, first)), InitialValues())
    spec = form.spec()
    assert spec is not None, (form.job.errors, form.tasks.errors)
    assert spec.remarks == ()
    assert filled(spec).job["shape"] == first.job.get("shape", "distributed")


def minimal_form(**changes: str) -> dict[str, str]:
    """The smallest form that a page sends."""
    return {
        "name": "mine", "queue": "default", "tasks-TOTAL_FORMS": "1", "tasks-INITIAL_FORMS": "0",
        "files-TOTAL_FORMS": "0", "files-INITIAL_FORMS": "0", "tasks-0-name": "main", "tasks-0-replicas": "1",
        "tasks-0-command": "true",
    } | changes  # fmt: skip


REST = '{"annotations": {"sla-waiting-time": "1h"}}'


def test_switch_between_form_and_yaml(people: People, as_: As) -> None:
    alice, form = as_(people.alice), minimal_form(rest=REST, description="one\r\ntwo", do="yaml")
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


def test_invalid_input_is_not_converted_and_has_errors(people: People, as_: As) -> None:
    alice = as_(people.alice)
    page = alice.post(
        reverse("jobs:submit"), minimal_form(**{"tasks-0-replicas": "many", "do": "yaml"})
    ).content.decode()
    assert 'value="many"' in page
    assert 'href="#id_tasks-0-replicas"' in page
    page = alice.post(reverse("jobs:submit_yaml"), {"text": "tasks: many", "do": "form"}).content.decode()
    assert "tasks: many" in page
    assert 'role="alert"' in page


def test_ignored_fields_are_reported_on_conversion(people: People, as_: As) -> None:
    text = formats.dump(JobSpec.parse({"name": "one", "tasks": [{"name": "main", "command": ["true"]}]}))
    text = text.replace("name: one", "name: one\n  namespace: elsewhere", 1)
    page = as_(people.alice).post(reverse("jobs:submit_yaml"), {"text": text, "do": "form"}).content.decode()
    assert "metadata.namespace" in page


@pytest.mark.parametrize(
    "rest", ["no json", "[1]", '{"policies": 5}', '{"name": "other"}', "[" * 100_000, '{"annotations": {"a": 5}}']
)
def test_malformed_rest_is_refused(people: People, as_: As, rest: str) -> None:
    page = as_(people.alice).post(reverse("jobs:submit"), minimal_form(rest=rest))
    assert page.status_code == 200
    assert not Job.objects.exists()
    assert 'role="alert"' in page.content.decode()


def test_untouched_form_of_each_kind_is_accepted(people: People, as_: As) -> None:
    for kind in KINDS:
        page = as_(people.alice).get(reverse("jobs:submit"), {"preset": kind.name})
        forms = [page.context["form"], page.context["tasks"], page.context["files"]]
        sent = post_data(SimpleNamespace(job=forms[0], tasks=forms[1], files=forms[2]))
        assert as_(people.alice).post(reverse("jobs:submit"), sent.dict()).status_code == 302
    assert [job.kind for job in Job.objects.order_by("pk")] == ["training", "training", "debugging"]


def test_unknown_queue_and_environment_stay_selected(people: People, as_: As) -> None:
    text = "name: one\nqueue: gone\ntasks: [{name: main, command: [sh], environment: lost}]"
    page = as_(people.alice).post(reverse("jobs:submit_yaml"), {"text": text, "do": "form"}).content.decode()
    assert '<option value="gone" selected>' in page
    assert '<option value="lost" selected>' in page


def test_secrets_are_carried_between_form_and_yaml(people: People, as_: As) -> None:
    alice = as_(people.alice)
    secret = "token: |\n  one\n  two\n"
    page = alice.post(reverse("jobs:submit"), minimal_form(secrets=secret, do="yaml"))
    assert page.context["form"]["secrets"].value() == secret
    page = alice.post(
        reverse("jobs:submit_yaml"), {"text": page.context["form"]["text"].value(), "secrets": secret, "do": "form"}
    )
    assert page.context["form"]["secrets"].value() == secret
    wrong = alice.post(reverse("jobs:submit"), minimal_form(secrets="just words"))
    assert wrong.context["form"].errors.keys() == {"secrets"}


@pytest.mark.parametrize(
    ("changes", "field", "message"),
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
def test_ambiguous_input_is_refused(people: People, as_: As, changes: dict[str, str], field: str, message: str) -> None:
    page = as_(people.alice).post(reverse("jobs:submit"), minimal_form(**changes)).content.decode()
    assert not Job.objects.exists()
    assert f'href="#id_{field}"' in page
    assert message in page


NEEDS_SECRET = {
    "plugins": {"openpai": []},
    "tasks": [{"name": "main", "command": ["sh", "-c", "echo <% $secrets.token %>"], "resources": {"cpu": "1"}}],
}


def test_clone_asks_for_secrets_and_reveals_none(people: People, as_: As) -> None:
    spec = JobSpec.parse({"name": "one", **NEEDS_SECRET})
    now = clock.now()
    job = jobs.submit(spec=spec, tenant=people.lab, user=people.alice, now=now, secrets={"token": "s3cret"})
    for name in ("jobs:submit", "jobs:submit_yaml"):
        page = as_(people.alice).get(reverse(name), {"clone": str(job.uid)}).content.decode()
        assert "<code>token</code>" in page
        assert "s3cret" not in page
    form = minimal_form(
        **{"tasks-0-command": shlex.join(spec.tasks[0].command), "rest": '{"plugins": {"openpai": []}}'}
    )
    form["framework"] = "openpai"
    page = as_(people.alice).post(reverse("jobs:submit"), form).content.decode()
    assert "The secret “token” has no value" in page
    as_(people.alice).post(reverse("jobs:submit"), form | {"secrets": "token: other"})
    assert Job.objects.get(name="mine").spec["plugins"] == {"openpai": []}


@pytest.mark.parametrize("phase", ["pending", "running", "failed", "aborted", "completed"])
def test_job_of_any_phase_can_be_cloned(people: People, as_: As, phase: str) -> None:
    job = people.submit("again", priority=5)
    Job.objects.filter(pk=job.pk).update(phase=phase)
    alice, address = as_(people.alice), f"{reverse('jobs:submit')}?clone={job.uid}"
    assert all(address in alice.get(page).content.decode() for page in (job_page(job), reverse("jobs:list")))
    context = alice.get(address).context
    assert (context["form"]["name"].value(), context["form"]["priority"].value()) == ("again-1", 5)
    assert as_(people.charlie).get(address).status_code == 404


def job_page(job: Job) -> str:
    return reverse("jobs:detail", args=[job.uid])


SWEEP_FIELDS = {"shape": "sweep", "sweep-parameters": "lr = 0.1, 0.01\nwidth = 1, 2, 3", "sweep-how": "grid"}
SWEEP_FORM = {"tasks-0-command": "train --lr {{ lr }} {{width}}", **SWEEP_FIELDS}


@pytest.mark.parametrize("kind", ["single", "distributed", "debugging", "sweep"])
def test_change_of_kind_keeps_the_input(people: People, as_: As, kind: str) -> None:
    changes = {
        "name": "MINE!",
        "tasks-0-command": "python mine.py 'open",
        "tasks-0-cpu": "many",
        "description": "Why",
    }
    changes |= {
        "tasks-0-env": "A=1",
        "priority": "7",
        "shape": "single",
        "sweep-parameters": "lr = 1",
        "rest": REST,
    }
    context = as_(people.alice).post(reverse("jobs:submit"), minimal_form(**changes, do=kind)).context
    sent = post_data(SimpleNamespace(job=context["form"], tasks=context["tasks"], files=context["files"]))
    assert {name: sent[name] for name in changes if name in sent and name not in ("shape", "rest")} == {
        name: text for name, text in changes.items() if name not in ("shape", "rest", "sweep-parameters")
    }
    assert json.loads(sent["rest"]) == json.loads(REST)
    assert context["beside"].parameters["parameters"].value() == "lr = 1"
    assert (context["shape"], context["form"].errors) == (kind, {})
    assert not Job.objects.exists()


def test_untouched_fields_get_the_defaults_of_the_new_kind(people: People, as_: As) -> None:
    alice = as_(people.alice)
    context = alice.get(reverse("jobs:submit"), {"preset": "single"}).context
    for kind in ("debugging", "sweep", "distributed", "single"):
        sent = post_data(SimpleNamespace(job=context["form"], tasks=context["tasks"], files=context["files"])).dict()
        context = alice.post(reverse("jobs:submit"), sent | {"do": kind}).context
        initial = alice.get(reverse("jobs:submit"), {"preset": kind}).context
        assert post_data(SimpleNamespace(**{n: initial[m] for n, m in PARTS})) == post_data(
            SimpleNamespace(**{n: context[m] for n, m in PARTS})
        )


PARTS = [("job", "form"), ("tasks", "tasks"), ("files", "files")]


def test_sweep_is_submitted_from_the_job_form(people: People, as_: As) -> None:
    alice, form = as_(people.alice), minimal_form(**SWEEP_FORM)
    preview = alice.post(reverse("jobs:submit"), form | {"do": "look"})
    assert "6 jobs would be submitted" in preview.content.decode()
    assert not Job.objects.exists()
    assert "<strong>6 jobs</strong>" in alice.post(reverse("jobs_what_if"), form).content.decode()
    page = alice.post(reverse("jobs:submit"), form, follow=True)
    assert page.redirect_chain[0][0].startswith("/batches/")
    assert Job.objects.get(name="mine-2").spec["tasks"][0]["command"] == ["train", "--lr", "0.1", "2"]
    assert Job.objects.count() == 6


def test_sweep_round_trips_through_yaml_and_is_submitted(people: People, as_: As) -> None:
    alice = as_(people.alice)
    page = alice.post(reverse("jobs:submit"), minimal_form(**SWEEP_FORM, do="yaml"))
    sent = {**SWEEP_FIELDS, "text": page.context["form"]["text"].value()}
    assert page.context["beside"].parameters["parameters"].value() == SWEEP_FIELDS["sweep-parameters"]
    back = alice.post(reverse("jobs:submit_yaml"), sent | {"do": "form"}).context
    assert (back["shape"], back["beside"].parameters["parameters"].value()) == (
        "sweep",
        SWEEP_FIELDS["sweep-parameters"],
    )
    alice.post(reverse("jobs:submit_yaml"), sent)
    assert Job.objects.count() == 6


@pytest.mark.parametrize(
    ("changes", "field", "message"),
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
def test_sweep_errors_are_at_their_field(
    people: People, as_: As, changes: dict[str, str], field: str, message: str
) -> None:
    page = as_(people.alice).post(reverse("jobs:submit"), minimal_form(**SWEEP_FORM) | changes)
    html = page.content.decode()
    assert f'href="#id_{field}"' in html
    assert message in html.split('role="alert"')[1].split("</ul>")[0]
    assert not Job.objects.exists()


def test_empty_manifest_has_no_error(people: People, as_: As) -> None:
    for text in ("", " \n"):
        box = as_(people.alice).post(reverse("jobs_what_if"), {"text": text}).content.decode()
        assert "Enter or paste a manifest" in box


def test_node_labels_tolerations_and_ports_are_typed_in_lines(people: People, as_: As) -> None:
    """From the form to the stored job, and back."""
    Node.objects.filter(cluster=people.cluster).update(labels={"nvidia.com/gpu.product": "H100", "zone": "a"})
    lines = {
        "tasks-0-gpu_model": "H100",
        "tasks-0-node_selector": "zone=a\r\ndisk=",
        "tasks-0-tolerations": "gpu=yes:noschedule\r\nbatch\r\n*:NoExecute",
        "tasks-0-ports": "web = 8080",
    }
    as_(people.alice).post(reverse("jobs:submit"), minimal_form(**lines))
    job = Job.objects.get()
    task = job.spec["tasks"][0]
    assert task["node_selector"] == {"zone": "a", "disk": "", "nvidia.com/gpu.product": "H100"}
    assert task["tolerations"] == [
        {"key": "gpu", "value": "yes", "effect": "NoSchedule"},
        {"key": "batch", "operator": "Exists"},
        {"operator": "Exists", "effect": "NoExecute"},
    ]
    assert task["ports"] == {"web": 8080}
    page = as_(people.alice).get(reverse("jobs:submit"), {"clone": job.uid})
    again = page.context["tasks"].forms[0]
    assert [again[name].value() for name in ("gpu_model", "node_selector", "tolerations", "ports")] == [
        "H100", "disk=\nzone=a", "gpu=yes:NoSchedule\nbatch\n*:NoExecute", "web=8080",
    ]  # fmt: skip
    assert not page.context["also"]


def test_toleration_with_a_time_limit_is_passed_on() -> None:
    toleration = {"key": "down", "operator": "Exists", "effect": "NoExecute", "toleration_seconds": 60}
    document = {"name": "main", "command": ["x"], "tolerations": [toleration]}
    spec = JobSpec.parse({"name": "a", "tasks": [document]})
    form = form_of(post_data(form_of(None, filled(spec))), InitialValues())
    assert (form.spec(), form.also) == (spec, ["plugins and their arguments", "main: tolerations"])


def test_failed_pods_stay_only_where_hekla_makes_them(people: People) -> None:
    task = {"name": "main", "image": "busybox", "command": ["false"]}
    spec = JobSpec.parse({"name": "kept", "tasks": [task], "keep_failed_seconds": 3600})

    def problems() -> list[str]:
        found = jobs.find_problems(spec=spec, tenant=people.lab, user=people.alice, now=clock.now())
        return [problem.path for problem in found]

    assert problems() == []
    Cluster.objects.filter(pk=people.cluster.pk).update(kind="kubernetes", config={"scheduler": "volcano"})
    assert problems() == ["keep_failed_seconds"]
    with pytest.raises(Invalid, match="Volcano makes its pods"):
        jobs.submit(spec=spec, tenant=people.lab, user=people.alice, now=clock.now())
