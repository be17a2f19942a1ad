"""Reading and writing Volcano's JobTemplate and JobFlow, and patches of jobs."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.domain.specs import SPECS

from hekla.domain import formats
from hekla.domain.errors import Invalid, Problem, Refused
from hekla.domain.flows import FlowSpec, Probe
from hekla.domain.formats.merge_patch import merge
from hekla.domain.jobspec import JobSpec

TEMPLATE = """\
apiVersion: flow.volcano.sh/v1alpha1
kind: JobTemplate
metadata: {name: prepare}
spec:
  queue: default
  tasks:
    - name: main
      replicas: 2
      template: {spec: {containers: [{name: c, command: [python, prepare.py], resources: {requests: {cpu: "1"}}}]}}
"""
FLOW = """\
apiVersion: flow.volcano.sh/v1alpha1
kind: JobFlow
metadata: {name: nightly, namespace: somewhere}
spec:
  jobRetainPolicy: delete
  flows:
    - name: prepare
    - name: train
      template: prepare
      dependsOn:
        targets: [prepare]
        probe:
          httpGetList: [{taskName: main, port: 8080, path: /ready, httpHeader: {name: X-A, value: b}}]
          tcpSocketList: [{taskName: main, port: 80}]
          taskStatusList: [{taskName: main, phase: Running}]
      patch:
        jobSpec: {maxRetry: 5}
"""


def problems(text: str) -> dict[str, str]:
    with pytest.raises(Invalid) as caught:
        formats.load_flow(text)
    return {problem.path: problem.message for problem in caught.value.problems}


def test_templates_and_a_flow_are_read() -> None:
    loaded = formats.load_flow(f"{TEMPLATE}---\n{FLOW}")
    assert [template.name for template in loaded.templates] == ["prepare"]
    assert loaded.templates[0].tasks[0].command == ("python", "prepare.py")
    assert loaded.flow is not None
    first, second = loaded.flow.steps
    assert (loaded.flow.name, loaded.flow.retain, first.template_name) == ("nightly", "delete", "prepare")
    assert (second.template_name, second.depends_on, second.patch) == (
        "prepare",
        ("prepare",),
        {"spec": {"maxRetry": 5}},
    )
    assert second.probes == (
        Probe(task="main", state="running"),
        Probe(task="main", port=80),
        Probe(task="main", port=8080, path="/ready", headers={"X-A": "b"}),
    )  # fmt: skip
    assert loaded.warnings == ("metadata.namespace: ignored: a job belongs to the tenant that you submit it for.",)


def test_ignored_fields_are_reported() -> None:
    flow = FLOW.replace("- name: prepare\n", "- name: prepare\n      tuning: 1\n", 1)
    template = TEMPLATE.replace("queue: default", "queue: default\n  minimum: 1")
    warnings = formats.load_flow(f"{template}---\n{flow}---\nkind: Secret\n").warnings
    assert "spec.flows[0].tuning: ignored." in warnings
    assert any(warning.startswith("JobTemplate prepare.spec.minimum: ignored") for warning in warnings)
    assert "document 3: ignored: “Secret” is neither a template nor a flow. Submit it separately." in warnings


def test_every_problem_has_its_path_in_the_manifest() -> None:
    flow = FLOW.replace("targets: [prepare]", "targets: [prepared]").replace("phase: Running", "phase: Pending")
    flow = flow.replace("port: 80}", "port: 0}").replace("jobRetainPolicy: delete", "jobRetainPolicy: keep")
    template = TEMPLATE.replace("replicas: 2", "replicas: many")
    found = problems(f"{template}---\n{flow}")
    assert found["JobTemplate prepare.spec.tasks[0].replicas"] == "Must be an integer, not “many”."
    assert found["spec.flows[1].dependsOn.targets[0]"].startswith("Unknown step “prepared”. Did you mean")
    assert found["spec.flows[1].dependsOn.probe.taskStatusList[0].phase"].startswith("“pending” is not one of running")
    assert found["spec.flows[1].dependsOn.probe.tcpSocketList[0].port"] == "Must be at least 1, not 0."
    assert found["spec.jobRetainPolicy"].startswith("“keep” is not one of retain, delete")


@pytest.mark.parametrize(
    ("text", "path", "words"),
    [
        ("kind: Job\n", "", "no flow"),
        (f"{FLOW}---\n{FLOW}", "", "2 flows"),
        (f"{TEMPLATE}---\n{TEMPLATE}", "JobTemplate prepare", "two templates"),
        (FLOW.replace("v1alpha1", "v1"), "apiVersion", "must be flow.volcano.sh/v1alpha1"),
        (FLOW.replace("jobSpec: {maxRetry: 5}", "jobSpec: {a: .nan}"), "spec.flows[1].patch", "must be finite"),
        (FLOW.replace("jobSpec: {maxRetry: 5}", r'jobSpec: {a: "\0"}'), "spec.flows[1].patch", "NUL characters"),
        (FLOW.replace("{maxRetry: 5}", "[" * 40 + "]" * 40), "spec.flows[1].patch", "32 levels"),
    ],
)
def test_invalid_flow_is_refused(text: str, path: str, words: str) -> None:
    assert words in problems(text)[path]


def test_flow_is_not_a_job() -> None:
    with pytest.raises(Invalid, match="has a JobFlow, which is not a job"):
        formats.load(FLOW)


def test_later_errors_have_their_path_in_the_manifest() -> None:
    loaded = formats.load_flow(FLOW)
    wrong = loaded.translate_paths(Invalid([Problem("steps.1.patch.spec.tasks[0].replicas", "bad")]))
    assert isinstance(wrong, Invalid)
    assert wrong.problems[0].path == "spec.flows[1].patch.jobSpec.tasks[0].replicas"
    refused = loaded.translate_paths(Refused("taken", "steps.1.name"))
    assert isinstance(refused, Refused)
    assert refused.path == "spec.flows[1].name"


NAMES = st.sampled_from(["main", "ps", "worker"])
PROBES = st.one_of(
    st.builds(lambda task, state: {"task": task, "state": state}, NAMES, st.sampled_from(["running", "succeeded"])),
    st.builds(lambda task, port: {"task": task, "port": port}, NAMES, st.integers(1, 65_535)),
    st.builds(
        lambda port, path, headers: {"port": port, "path": path, "headers": headers},
        st.integers(1, 65_535), st.sampled_from(["/", "/a?b=c"]), st.sampled_from([{}, {"X-A": "b"}]),
    ),
)  # fmt: skip


@st.composite
def flows(draw: st.DrawFn) -> FlowSpec:
    names = [f"s{number}" for number in range(draw(st.integers(1, 4)))]
    steps: list[dict[str, Any]] = []
    for position, name in enumerate(names):
        depends_on = draw(st.lists(st.sampled_from(names[:position]), max_size=2)) if position else []
        probes = draw(st.lists(PROBES, max_size=3)) if depends_on else []
        patch = draw(st.sampled_from([{}, {"spec": {"maxRetry": 2}}, {"spec": {}, "metadata": {"annotations": {}}}]))
        template = draw(st.sampled_from(["", "other"]))
        steps.append({"name": name, "depends_on": depends_on, "probes": probes, "patch": patch, "template": template})
    return FlowSpec.parse({"name": "flow", "retain": draw(st.sampled_from(["retain", "delete"])), "steps": steps})


def _plain(flow: FlowSpec) -> list[Any]:
    """The content of a flow that a manifest keeps: probes sorted, templates by name, no empty patches."""
    return [
        (step.name, step.template_name, step.depends_on, sorted(map(repr, step.probes)),
         {key: value for key, value in step.patch.items() if value != {}})
        for step in flow.steps
    ]  # fmt: skip


@given(flows(), SPECS)
def test_round_trip_of_templates_and_flows(flow: FlowSpec, template: JobSpec) -> None:
    loaded = formats.load_flow(formats.dump_flow(flow, [template]))
    assert loaded.flow is not None
    assert (loaded.flow.name, loaded.flow.retain) == (flow.name, flow.retain)
    assert _plain(loaded.flow) == _plain(flow)
    assert loaded.templates == formats.load_flow(formats.dump_template(template)).templates
    assert formats.dump(loaded.templates[0]) == formats.dump(template)


@given(SPECS)
def test_job_in_a_step_is_written_as_a_template(job: JobSpec) -> None:
    flow = FlowSpec.parse({"name": "f", "steps": [{"name": "a", "job": job.document()}]})
    loaded = formats.load_flow(formats.dump_flow(flow))
    assert loaded.flow is not None
    assert loaded.flow.steps[0].template_name == loaded.templates[0].name == "f-a"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def merge_by_rfc(target: Any, patch: Any) -> Any:
    """The function of RFC 7396, section 2."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        result.pop(name, None) if value is None else result.update({name: merge_by_rfc(result.get(name), value)})
    return result


@given(JSON.filter(lambda target: "[" not in repr(target)), JSON)
def test_patch_without_lists_follows_the_rfc(target: Any, patch: Any) -> None:
    assert merge(target, patch) == merge_by_rfc(target, patch)


def test_named_list_entries_are_merged_by_name() -> None:
    tasks = {"tasks": [{"name": "ps", "replicas": 1}, {"name": "worker", "replicas": 2}]}
    patch = {"tasks": {"worker": {"replicas": 4}, "ps": None, "chief": {"replicas": 1}}}
    assert merge(tasks, patch) == {"tasks": [{"name": "worker", "replicas": 4}, {"name": "chief", "replicas": 1}]}
    assert merge(tasks, {"tasks": [1]}) == {"tasks": [1]}


@given(SPECS)
def test_empty_patch_changes_nothing(spec: JobSpec) -> None:
    assert formats.dump(formats.apply_patch(spec, {}).spec) == formats.dump(spec)


def job() -> JobSpec:
    return formats.load_flow(TEMPLATE).templates[0]


def test_patch_changes_pod_templates() -> None:
    container = {"main": {"env": {"LR": {"value": "0.1"}}, "command": ["python", "other.py"]}}
    patch = {"spec": {"queue": "fast", "tasks": {"main": {"template": {"spec": {"containers": container}}}}}}
    loaded = formats.apply_patch(job(), patch)
    assert loaded.spec.queue == "fast"
    assert loaded.spec.tasks[0].command == ("python", "other.py")
    assert loaded.spec.tasks[0].env == {"LR": "0.1"}
    assert loaded.spec.tasks[0].resources == {"cpu": "1"}


def test_problems_and_ignored_fields_of_a_patch_are_reported() -> None:
    with pytest.raises(Invalid) as caught:
        formats.apply_patch(job(), {"spec": {"tasks": {"main": {"replicas": "x"}}, "maxRetry": "y"}})
    assert [problem.path for problem in caught.value.problems] == ["spec.tasks[0].replicas", "spec.maxRetry"]
    with pytest.raises(Invalid) as caught:
        formats.apply_patch(job(), {"metadata": {"name": "x"}, "status": {}})
    assert [problem.path for problem in caught.value.problems] == ["status", "metadata.name"]
    assert formats.apply_patch(job(), {"spec": {"tuning": 1}}).warnings == ("spec.tuning: ignored.",)
