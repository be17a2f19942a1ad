"""Rules for tolerations, affinity, topology spread and labels of tasks: those of Kubernetes, and limits."""

from typing import Any

import pytest

from hekla.domain.errors import Invalid
from hekla.domain.jobspec import JobSpec
from hekla.domain.placement import pod_fields, without_labels

REQUIRED = "required_during_scheduling_ignored_during_execution"
PREFERRED = "preferred_during_scheduling_ignored_during_execution"


def job(**task: Any) -> dict[str, Any]:
    return {"name": "j", "tasks": [{"name": "a", "command": ["x"], **task}]}


def nodes(*expressions: dict[str, Any], **term: Any) -> dict[str, Any]:
    """A job that requires nodes by one term."""
    wanted = {"match_expressions": list(expressions)} if expressions else {}
    return job(affinity={"node_affinity": {REQUIRED: {"node_selector_terms": [wanted | term]}}})


def near(**term: Any) -> dict[str, Any]:
    """A job that requires to be near pods by one term."""
    return job(affinity={"pod_affinity": {REQUIRED: [{"topology_key": "zone", **term}]}})


def spread(*constraints: dict[str, Any]) -> dict[str, Any]:
    usual = {"max_skew": 1, "topology_key": "zone", "when_unsatisfiable": "DoNotSchedule"}
    return job(topology_spread_constraints=[usual | one for one in constraints])


EXPRESSION = "affinity.node_affinity." + REQUIRED + ".node_selector_terms.0.match_expressions.0"
FIELD = EXPRESSION.replace("match_expressions", "match_fields")
TERM = f"affinity.pod_affinity.{REQUIRED}.0"
A_LABEL = {"match_labels": {"app": "x"}}


@pytest.mark.parametrize(
    ("document", "path", "sentence"),
    [
        (job(tolerations=[{}]), "tolerations.0.key", "Only the operator Exists can be without a key"),
        (job(tolerations=[{"key": "a/b/c"}]), "tolerations.0.key", "is not a valid label name"),
        (job(tolerations=[{"key": "a", "operator": "Like"}]), "tolerations.0.operator", "Equal, Exists"),
        (job(tolerations=[{"key": "a", "effect": "NoRun"}]), "tolerations.0.effect", "is not one of NoSchedule"),
        (job(tolerations=[{"key": "a", "value": "-"}]), "tolerations.0.value", "is not a valid label value"),
        (
            job(tolerations=[{"key": "a", "operator": "Exists", "value": "x"}]),
            "tolerations.0.value",
            "Exists takes no value",
        ),
        (
            job(tolerations=[{"key": "a", "effect": "NoSchedule", "toleration_seconds": 1}]),
            "tolerations.0.toleration_seconds",
            "Only for the effect NoExecute",
        ),
        (job(tolerations=[{"key": "a"}] * 33), "tolerations", "The limit is 32"),
        (job(tolerations=[{"key": "a", "tolerationSeconds": 1}]), "tolerations.0.tolerationSeconds", "Did you mean"),
        (nodes({"key": "zone", "operator": "In"}), f"{EXPRESSION}.values", "In needs at least one value"),
        (nodes({"key": "zone", "operator": "Exists", "values": ["x"]}), f"{EXPRESSION}.values", "takes no values"),
        (
            nodes({"key": "n", "operator": "Gt", "values": ["x"]}),
            f"{EXPRESSION}.values",
            "exactly one value, an integer",
        ),
        (nodes({"key": "n", "operator": "Lt", "values": ["1", "2"]}), f"{EXPRESSION}.values", "exactly one value"),
        (nodes({"key": "zone", "operator": "Near", "values": ["x"]}), f"{EXPRESSION}.operator", "is not one of"),
        (nodes({"key": "zone", "operator": "In", "values": ["a b"]}), f"{EXPRESSION}.values.0", "valid label value"),
        (nodes({"key": "zone", "operator": "In", "values": ["x"] * 65}), f"{EXPRESSION}.values", "The limit is 64"),
        (nodes({"key": "", "operator": "Exists"}), f"{EXPRESSION}.key", "Must not be empty"),
        (nodes({"key": "x" * 64, "operator": "Exists"}), f"{EXPRESSION}.key", "is not a valid label name"),
        (nodes(*[{"key": "a", "operator": "Exists"}] * 33), EXPRESSION[:-2], "The limit is 32"),
        (
            nodes(match_fields=[{"key": "spec.host", "operator": "In", "values": ["n"]}]),
            f"{FIELD}.key",
            "is not one of metadata.name",
        ),
        (
            nodes(match_fields=[{"key": "metadata.name", "operator": "In", "values": ["n", "m"]}]),
            f"{FIELD}.values",
            "The limit is 1",
        ),
        (
            nodes(match_fields=[{"key": "metadata.name", "operator": "In", "values": ["N_1"]}]),
            f"{FIELD}.values.0",
            "is not a valid node name",
        ),
        (
            job(affinity={"node_affinity": {REQUIRED: {"node_selector_terms": []}}}),
            f"affinity.node_affinity.{REQUIRED}.node_selector_terms",
            "At least one is required",
        ),
        (
            job(affinity={"node_affinity": {PREFERRED: [{"weight": 101, "preference": {}}]}}),
            f"affinity.node_affinity.{PREFERRED}.0.weight",
            "at most 100",
        ),
        (
            job(affinity={"node_affinty": {}}),
            "affinity.node_affinty",
            "Did you mean “node_affinity”?",
        ),
        (near(topology_key=""), f"{TERM}.topology_key", "Must not be empty"),
        (near(namespaces=["other"]), f"{TERM}.namespaces", "Unknown field “namespaces”"),
        (near(match_label_keys=["app"]), f"{TERM}.match_label_keys", "Only together with a label selector"),
        (
            near(label_selector=A_LABEL, match_label_keys=["app"]),
            f"{TERM}.match_label_keys.0",
            "is already in the label selector",
        ),
        (
            near(label_selector={}, match_label_keys=["a"], mismatch_label_keys=["a"]),
            f"{TERM}.mismatch_label_keys",
            "cannot be among both",
        ),
        (
            near(label_selector={"match_expressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]}),
            f"{TERM}.label_selector.match_expressions.0.operator",
            "is not one of In, NotIn",
        ),
        (near(label_selector={"match_labels": {"a b": "x"}}), f"{TERM}.label_selector.match_labels.a b", "label name"),
        (near(label_selector={"match_labels": {"a": 1}}), f"{TERM}.label_selector.match_labels.a", "in quotes"),
        (
            job(affinity={"pod_anti_affinity": {REQUIRED: [{"topology_key": "zone"}] * 17}}),
            f"affinity.pod_anti_affinity.{REQUIRED}",
            "The limit is 16",
        ),
        (spread({"max_skew": 0}), "topology_spread_constraints.0.max_skew", "at least 1"),
        (spread({"when_unsatisfiable": "Never"}), "topology_spread_constraints.0.when_unsatisfiable", "DoNotSchedule"),
        (
            spread({"when_unsatisfiable": "ScheduleAnyway", "min_domains": 2}),
            "topology_spread_constraints.0.min_domains",
            "Only together with DoNotSchedule",
        ),
        (spread({"node_taints_policy": "Some"}), "topology_spread_constraints.0.node_taints_policy", "Honor, Ignore"),
        (spread({}, {}), "topology_spread_constraints.1", "Another constraint has the same topology key"),
        (job(labels={"hekla.dev/job": "x"}), "labels.hekla.dev/job", "are reserved"),
        (job(labels={"app.kubernetes.io/name": "x"}), "labels.app.kubernetes.io/name", "are reserved"),
        (job(labels={"a": "x" * 64}), "labels.a", "64 characters. The limit is 63"),
        (job(labels={"-a": "x"}), "labels.-a", "is not a valid label name"),
        (job(labels={f"{'a' * 254}/b": "x"}), f"labels.{'a' * 254}/b", "is not a valid label name"),
        (job(labels={str(n): "" for n in range(33)}), "labels", "The limit is 32"),
    ],
)
def test_problem_has_its_path_and_the_rule(document, path, sentence):
    with pytest.raises(Invalid) as raised:
        JobSpec.parse(document)
    assert [problem.path for problem in raised.value.problems] == [f"tasks.0.{path}"]
    assert sentence in raised.value.problems[0].message


def test_affinity_has_a_total_size():
    requirement = {"key": "k", "operator": "In", "values": ["v" * 63] * 64}
    with pytest.raises(Invalid, match="The affinity exceeds 64 KiB"):
        JobSpec.parse(nodes(*[requirement] * 16))


def test_long_label_names_are_checked_quickly():
    """A pattern with nested repetitions must not take exponential time."""
    with pytest.raises(Invalid):
        JobSpec.parse(job(labels={f"{'a.' * 120}-/b": "x"}))


def test_default_values_are_not_written():
    spec = JobSpec.parse(job(affinity={"node_affinity": {}}, tolerations=[], topology_spread_constraints=[], labels={}))
    assert spec.document()["tasks"] == [{"name": "a", "command": ["x"]}]
    assert pod_fields(spec.tasks[0]) == {}


def test_a_pod_does_not_require_labels_that_only_the_scheduler_reads():
    """The kubelet would refuse it."""
    fast, near = ({"key": key, "operator": "Exists"} for key in ("fast", "zone"))
    document = nodes(fast, near)
    document["tasks"][0] |= {"node_selector": {"fast": "yes", "zone": "a"}, "tolerations": [{"key": "gpu"}]}
    fields = pod_fields(JobSpec.parse(document).tasks[0])
    assert without_labels(fields, {}) == without_labels(fields, {"other": "x"}) == fields
    left = without_labels(fields, {"fast": "yes"})
    assert left == {"nodeSelector": {"zone": "a"}, "tolerations": fields["tolerations"]}
    assert without_labels(pod_fields(JobSpec.parse(nodes(near)).tasks[0]), {"fast": "yes"})["affinity"]
    assert "affinity" in fields
