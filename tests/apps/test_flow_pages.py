"""Pages of flows and templates, and the drawing of a flow."""

from collections.abc import Callable
from itertools import combinations
from typing import Any

import pytest
from django.contrib.messages import get_messages
from django.test import Client
from django.urls import reverse
from hypothesis import given
from hypothesis import strategies as st
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people

from hekla.apps.accounts.models import User
from hekla.apps.flows import drawing, services
from hekla.apps.flows.models import Flow, JobTemplate
from hekla.apps.jobs.models import Job
from hekla.domain.flows import FlowSpec
from hekla.domain.jobspec import JobSpec
from hekla.lib import clock
from hekla.pages.flows import live as live_views

__all__ = ["db", "people", "shared_people"]

As = Callable[[User], Client]
JOB = {"tasks": [{"name": "main", "command": ["true"], "resources": {"cpu": "1"}}]}
TEMPLATE = """\
apiVersion: flow.volcano.sh/v1alpha1
kind: JobTemplate
metadata: {name: prepare}
spec: {tasks: [{name: main, template: {spec: {containers: [{name: m, command: ["true"]}]}}}]}
"""
FLOW = """\
apiVersion: flow.volcano.sh/v1alpha1
kind: JobFlow
metadata: {name: nightly, labels: {a: b}}
spec: {flows: [{name: prepare}, {name: train, template: prepare, dependsOn: {targets: [prepare]}}]}
"""


def start(people: People, *steps: dict[str, Any]) -> Flow:
    spec = FlowSpec.parse({"name": "flow", "steps": steps})
    return services.start(spec=spec, tenant=people.lab, user=people.alice, now=clock.now())


def create_template(people: People, name: str = "kept") -> JobTemplate:
    spec = JobSpec.parse({"name": name, **JOB})
    return services.create_template(spec=spec, tenant=people.lab, user=people.alice, now=clock.now())


def page(client: Client, name: str, *args: object, **query: str) -> str:
    answer = client.get(reverse(name, args=args), query)
    assert answer.status_code == 200
    return answer.content.decode()


def test_flow_starts_from_a_manifest_and_its_page_shows_steps(people: People, as_: As) -> None:
    answer = as_(people.alice).post(reverse("flows:start"), {"text": f"{TEMPLATE}---\n{FLOW}"})
    flow = Flow.objects.get()
    assert answer["Location"] == reverse("flows:detail", args=[flow.uid])
    assert [str(m) for m in get_messages(answer.wsgi_request)] == ["metadata.labels: ignored."]
    html = page(as_(people.bob), "flows:detail", flow.uid)
    job = Job.objects.get()
    assert html.count(reverse("jobs:detail", args=[job.uid])) == 3  # two drawings, one table
    assert "Waiting for step prepare to complete." in html
    assert "Step prepare started: job nightly-prepare was submitted." in html
    assert "from template prepare" in html
    assert reverse("flows:detail", args=[flow.uid]) in page(as_(people.bob), "jobs:detail", job.uid)
    assert "nightly" in page(as_(people.bob), "flows:list")
    assert "nightly" not in page(as_(people.charlie), "flows:list")


def test_manifest_errors_have_paths_and_keep_the_input(people: People, as_: As) -> None:
    text = f"{TEMPLATE}---\n{FLOW}".replace("targets: [prepare]", "targets: [prepared]")
    html = as_(people.alice).post(reverse("flows:start"), {"text": text}).content.decode()
    assert "spec.flows[1].dependsOn.targets[0]: Unknown step “prepared”" in html
    assert "targets: [prepared]" in html
    html = as_(people.alice).post(reverse("flows:start"), {"text": FLOW}).content.decode()
    assert "spec.flows[0].name: Unknown template “prepare”." in html
    html = as_(people.alice).post(reverse("flows:start"), {"text": TEMPLATE}).content.decode()
    assert "The text has no JobFlow." in html
    assert not Flow.objects.exists()
    assert not JobTemplate.objects.exists()


def test_draft_is_drawn_and_checked_while_it_is_typed(people: People, as_: As) -> None:
    alice, text = as_(people.alice), f"{TEMPLATE}---\n{FLOW}"
    page = alice.post(reverse("flows:start"), {"text": text, "do": "draw"}).content.decode()
    assert (page.count("dag-name"), page.count("dag-line")) == (4, 2)  # two drawings
    checked = alice.post(reverse("flows:start"), {"text": text, "do": "check"}).json()
    assert [one["words"] for one in checked["problems"]] == ["Line 8: metadata.labels: ignored."]
    assert {"dependsOn", "name"} <= {*checked["fields"]["spec.flows[]"]}
    wrong = text.replace("targets: [prepare]", "targets: [prepared]")
    checked = alice.post(reverse("flows:start"), {"text": wrong, "do": "check"}).json()
    assert [one["line"] for one in checked["problems"]] == [9]
    assert "no problem" in alice.post(reverse("flows:start"), {"text": wrong, "do": "draw"}).content.decode()
    assert not Flow.objects.exists()


def test_draft_is_edited_in_its_drawing(people: People, as_: As) -> None:
    alice, text = as_(people.alice), f"{TEMPLATE}---\n{FLOW}"
    create_template(people, "saved")

    def edit(**values: str) -> dict[str, str]:
        answer: dict[str, str] = alice.post(reverse("flows:start"), {"text": text, "do": "edit", **values}).json()
        return answer

    added = edit(edit="add", name="report", template="saved", other="train")
    assert "  - name: report\n    template: saved\n    dependsOn:\n      targets:\n      - train\n" in added["text"]
    assert added["drawing"].count("dag-name") == 6
    assert 'data-flow-step="report"' in added["drawing"]
    assert '<option value="saved">' in added["drawing"]
    assert added["words"] == "Added step report."
    assert "3 steps. train waits for prepare. report waits for train." in added["drawing"]
    refused = edit(edit="connect", step="prepare", other="train")
    assert refused == {"problem": "Steps cannot wait for each other in a circle: prepare → train → prepare."}
    assert edit(edit="explode") == {"problem": "Unknown change."}
    text += f"---\n# {'x' * 2**20}\n"
    assert "The limit is 1 MiB." in edit(edit="add", name="report", template="saved")["problem"]
    assert not Flow.objects.exists()


def test_viewer_cannot_start_a_flow(people: People, as_: As) -> None:
    html = as_(people.bob).post(reverse("flows:start"), {"text": f"{TEMPLATE}---\n{FLOW}"}).content.decode()
    assert "but not submit to it" in html


def test_start_form_is_prefilled_from_templates_or_a_flow(people: People, as_: As) -> None:
    alice = as_(people.alice)
    assert "kind: JobTemplate" in page(alice, "flows:start")
    create_template(people, "one"), create_template(people, "two")
    first = page(alice, "flows:start")
    assert "targets:" in first
    assert "name: two" in first
    flow = start(people, {"name": "one"})
    assert "name: flow-1" in page(alice, "flows:start", again=str(flow.uid))
    assert as_(people.charlie).get(reverse("flows:start"), {"again": str(flow.uid)}).status_code == 404


def test_flow_is_stopped_and_deleted_by_its_owner(people: People, as_: As) -> None:
    flow = start(people, {"name": "a", "job": JOB})
    assert reverse("flows:stop", args=[flow.uid]) not in page(as_(people.bob), "flows:detail", flow.uid)
    assert reverse("flows:stop", args=[flow.uid]) in page(as_(people.alice), "flows:detail", flow.uid)
    as_(people.alice).post(reverse("flows:stop", args=[flow.uid]))
    services.advance_all(now=clock.now())
    html = page(as_(people.alice), "flows:detail", flow.uid)
    assert "Stop requested." in html
    as_(people.alice).post(reverse("flows:delete", args=[flow.uid]))
    assert as_(people.alice).get(reverse("flows:detail", args=[flow.uid])).status_code == 404


def test_a_job_is_saved_as_a_template_and_submitted_from_it(people: People, as_: As) -> None:
    alice, job = as_(people.alice), people.submit("train-1", files={"a.py": "print(1)\n"})
    address = f"{reverse('flows:new_template')}?job={job.uid}"
    assert address in page(alice, "jobs:detail", job.uid)
    html = alice.get(address)
    answer = alice.post(address, {"text": html.context["form"].initial["text"]})
    template = JobTemplate.objects.get()
    assert answer["Location"] == reverse("flows:template", args=[template.uid])
    assert template.spec == job.spec
    assert "train-2" in page(alice, "flows:template", template.uid)
    alice.post(reverse("flows:submit_template", args=[template.uid]), {"name": "train-2"})
    assert Job.objects.get(name="train-2").spec["files"] == {"a.py": "print(1)\n"}
    refused = alice.post(reverse("flows:submit_template", args=[template.uid]), {"name": "train-2"}).content.decode()
    assert "has a job “train-2” already" in refused


def test_a_template_is_changed_to_another_job(people: People, as_: As) -> None:
    template, alice = create_template(people), as_(people.alice)
    edit = reverse("flows:edit_template", args=[template.uid])
    text = alice.get(edit).context["form"].initial["text"]
    alice.post(edit, {"text": text.replace("spec:", "spec:\n  minAvailable: 1", 1)})
    template.refresh_from_db()
    assert template.spec["min_available"] == 1
    plain = TEMPLATE.replace("flow.", "batch.").replace("JobTemplate", "Job")
    alice.post(edit, {"text": plain})
    template.refresh_from_db()
    assert template.name == "prepare"
    refused = alice.post(edit, {"text": f"{TEMPLATE}---\n{FLOW}"}).content.decode()
    assert "Enter one JobTemplate" in refused
    assert as_(people.bob).post(edit, {"text": plain}).status_code == 200
    assert "Only the owner of the template" in as_(people.bob).post(edit, {"text": plain}).content.decode()


def test_manifests_are_downloaded(people: People, as_: As) -> None:
    template = create_template(people)
    flow = start(people, {"name": "kept"})
    for name, uid, file in (("manifest", flow.uid, "flow"), ("template_manifest", template.uid, "kept")):
        answer = as_(people.bob).get(reverse(f"flows:{name}", args=[uid]))
        assert answer["Content-Disposition"] == f'attachment; filename="{file}.yaml"'
        assert "flow.volcano.sh/v1alpha1" in answer.content.decode()


def test_live_view_renders_the_parts_of_the_page(people: People, as_: As) -> None:
    flow = start(people, {"name": "a", "job": JOB}, {"name": "b", "job": JOB, "depends_on": ["a"]})
    params = {"uid": str(flow.uid)}
    parts = live_views._flow(people.alice, params)
    for part in ("flow-head", "flow-drawing", "flow-steps", "flow-timeline"):
        assert f'id="{part}"' in parts
        assert f'id="{part}"' in page(as_(people.alice), "flows:detail", flow.uid)
    assert live_views._flow_topics(people.alice, params) == {f"tenant:{people.lab.pk}"}
    assert flow.name in live_views._flows(people.alice, {})


def test_list_query_count_is_constant(people: People, as_: As, django_assert_max_num_queries: Any) -> None:
    for name in "abcdefgh":
        spec = FlowSpec.parse({"name": name, "steps": [{"name": "x", "job": JOB}]})
        services.start(spec=spec, tenant=people.lab, user=people.alice, now=clock.now())
    client = as_(people.alice)
    with django_assert_max_num_queries(15):
        client.get(reverse("flows:list"))


@st.composite
def specs(draw: st.DrawFn) -> FlowSpec:
    names = [f"s{number}" for number in range(draw(st.integers(1, 12)))]
    steps = [
        {"name": name, "depends_on": draw(st.lists(st.sampled_from(names[:index]), max_size=3)) if index else []}
        for index, name in enumerate(names)
    ]
    return FlowSpec.parse({"name": "flow", "steps": draw(st.permutations(steps))})


@given(specs())
@pytest.mark.parametrize("draw", [drawing.wide, drawing.narrow])
def test_each_step_is_drawn_once_without_overlap(draw: Any, spec: FlowSpec) -> None:
    drawn = draw(spec)
    assert {box.name for box in drawn.boxes} == {step.name for step in spec.steps}
    assert {(line.before, line.after) for line in drawn.lines} == {
        (before, after) for after, dependencies in spec.waits.items() for before in dependencies
    }
    for box in drawn.boxes:
        assert 0 <= box.x <= drawn.width - box.width
        assert 0 <= box.y <= drawn.height - box.height
    for one, other in combinations(drawn.boxes, 2):
        apart_x = one.x + one.width <= other.x or other.x + other.width <= one.x
        assert apart_x or one.y + one.height <= other.y or other.y + other.height <= one.y


@given(specs())
def test_wide_drawing_places_steps_right_of_dependencies(spec: FlowSpec) -> None:
    boxes = {box.name: box for box in drawing.wide(spec).boxes}
    for after, dependencies in spec.waits.items():
        assert all(boxes[before].x + boxes[before].width < boxes[after].x for before in dependencies)
