"""Reading and writing Volcano Queues."""

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.domain.specs import AMOUNTS, LABELS, LINES
from tests.support.examples import examples

from hekla.domain import formats, queue_settings
from hekla.domain.errors import Invalid, Refused

MANIFEST = """\
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata:
  name: vision
  annotations: {hekla.io/cluster: sim, hekla.io/tenants: "lab, other", hekla.io/description: Cameras}
spec:
  weight: 3
  priority: 7
  capability: {cpu: "8", memory: 16Gi}
  deserved: {cpu: 4}
  guarantee: {resource: {cpu: "2"}}
  reclaimable: false
  parent: research
status: {state: Open, allocated: {cpu: "1"}}
"""
USUAL = {
    "description": "", "weight": 1, "priority": 0, "capability": {}, "guarantee": {}, "deserved": {}, "parent": None,
    "reclaimable": True, "state": "open", "tenants": [], "job_order": "", "required_node_groups": [],
    "preferred_node_groups": [], "excluded_node_groups": [], "avoided_node_groups": [], "node_group_limits": {},
    "card_quota": {}, "hierarchy": "", "hierarchy_weights": "",
}  # fmt: skip


def test_manifest_is_read() -> None:
    loaded = formats.load_queue(MANIFEST)
    assert loaded.warnings == ()
    assert loaded.document == {
        "name": "vision", "cluster": "sim", "description": "Cameras", "tenants": ["lab", "other"], "weight": 3,
        "priority": 7, "capability": {"cpu": "8", "memory": "16Gi"}, "deserved": {"cpu": 4}, "guarantee": {"cpu": "2"},
        "reclaimable": False, "parent": "research",
    }  # fmt: skip


SETTINGS = """\
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata:
  name: vision
  annotations:
    hekla.io/cluster: sim
    hekla.io/job-order: fair
    volcano.sh/hierarchy: root/science/vision
    volcano.sh/hierarchy-weights: 1/2/4
    volcano.sh/nodegroup-resource-limits: '{"a100": {"nvidia.com/gpu": "4"}}'
    volcano.sh/card.quota: '{"NVIDIA-A100": 8}'
spec:
  affinity:
    nodeGroupAffinity:
      requiredDuringSchedulingIgnoredDuringExecution: [a100, h100]
      preferredDuringSchedulingIgnoredDuringExecution: [h100]
    nodeGroupAntiAffinity:
      requiredDuringSchedulingIgnoredDuringExecution: [old]
      preferredDuringSchedulingIgnoredDuringExecution: [a100]
"""


def test_settings_of_volcanos_plugins_are_read_and_written() -> None:
    loaded = formats.load_queue(SETTINGS)
    assert loaded.warnings == ()
    assert loaded.document == {
        "name": "vision", "cluster": "sim", "job_order": "fair", "hierarchy": "root/science/vision",
        "hierarchy_weights": "1/2/4", "node_group_limits": {"a100": {"nvidia.com/gpu": "4"}},
        "required_node_groups": ["a100", "h100"], "preferred_node_groups": ["h100"], "excluded_node_groups": ["old"],
        "avoided_node_groups": ["a100"], "card_quota": {"NVIDIA-A100": 8},
    }  # fmt: skip
    assert yaml.safe_load(formats.dump_queue(loaded.document)) == yaml.safe_load(SETTINGS)


@pytest.mark.parametrize(
    ("old", "new", "annotation"),
    [('{"a100": {', "{a100: {", "nodegroup-resource-limits"), ('{"NVIDIA-A100"', "{NVIDIA-A100", "card.quota")],
)
def test_limits_must_be_json(old: str, new: str, annotation: str) -> None:
    with pytest.raises(Invalid) as raised:
        formats.load_queue(SETTINGS.replace(old, new))
    (problem,) = raised.value.problems
    assert problem.path == f"metadata.annotations.volcano.sh/{annotation}"
    assert "Must be a JSON object" in problem.message


@pytest.mark.parametrize(
    ("old", "new", "paths"),
    [
        (
            "weight: 3",
            "affinity: {nodeGroupAffinity: {always: [a]}, zone: x}",
            ["spec.affinity.zone", "spec.affinity.nodeGroupAffinity.always"],
        ),
        ("weight: 3", "type: x\n  extendClusters: [{name: y}]", ["spec.type", "spec.extendClusters"]),
        ("weight: 3", "dequeueStrategy: fifo", ["spec.dequeueStrategy"]),
        ("weight: 3", "dequeueStrategy: traverse", []),
        ("name: vision", "name: vision\n  namespace: x\n  labels: {a: b}", ["metadata.namespace", "metadata.labels"]),
        (
            "{hekla.io/cluster: sim,",
            "{volcano.sh/other: root/a,",
            ["metadata.annotations.volcano.sh/other"],
        ),
        ("{resource: {cpu", "{rate: 1, resource: {cpu", ["spec.guarantee.rate"]),
        ("kind: Queue", "kind: Queue\ndata: 1", ["data"]),
        ("status:", "---\nkind: Job\n---\n", ["document 2", "document 3"]),
    ],
)
def test_ignored_fields_are_reported(old: str, new: str, paths: list[str]) -> None:
    loaded = formats.load_queue(MANIFEST.replace(old, new))
    assert [warning.partition(": ignored")[0] for warning in loaded.warnings] == paths


@pytest.mark.parametrize(
    ("text", "path", "message"),
    [
        ("kind: Job\napiVersion: batch.volcano.sh/v1alpha1\n", "", "no Queue"),
        (MANIFEST + "---\n" + MANIFEST, "", "2 Queue"),
        (MANIFEST.replace("/v1beta1", "/v1"), "apiVersion", "must be scheduling.volcano.sh/v1beta1"),
        (MANIFEST.replace("  weight:", "  wieght:"), "spec.wieght", "Did you mean “weight”"),
        (MANIFEST.replace('"lab, other"', "[lab]"), "metadata.annotations.hekla.io/tenants", "separated by commas"),
        (MANIFEST.replace('{resource: {cpu: "2"}}', "2"), "spec.guarantee", "Must be a mapping"),
        ("- 1\n", "", "no Queue"),
    ],
)
def test_invalid_or_other_manifests_are_refused(text: str, path: str, message: str) -> None:
    with pytest.raises(Invalid) as raised:
        formats.load_queue(text)
    assert any(problem.path == path and message in problem.message for problem in raised.value.problems)


def test_default_cluster_is_the_only_one() -> None:
    loaded = formats.load_queue(MANIFEST.replace("hekla.io/cluster: sim, ", ""))
    assert loaded.placed(["here"])["cluster"] == "here"
    for clusters, message in ((["here", "there"], "here, there"), ([], "No cluster exists yet")):
        with pytest.raises(Invalid) as raised:
            loaded.placed(clusters)
        assert raised.value.problems[0].path == "metadata.annotations.hekla.io/cluster"
        assert message in raised.value.problems[0].message
    assert formats.load_queue(MANIFEST).placed(["here", "there"])["cluster"] == "sim"


def test_root_queue_is_no_parent() -> None:
    loaded = formats.load_queue(MANIFEST.replace("parent: research", "parent: root"))
    assert "parent" not in loaded.document


def test_refusal_has_its_path_in_the_manifest() -> None:
    translated = formats.load_queue(MANIFEST).findings.translate_paths(Refused("Less, please.", "guarantee.cpu"))
    assert isinstance(translated, Refused)
    assert translated.path == "spec.guarantee.resource.cpu"


def test_written_manifest_is_a_queue() -> None:
    document = {**USUAL, "name": "vision", "cluster": "sim", "guarantee": {"cpu": "2"}, "state": "closed"}
    assert yaml.safe_load(formats.dump_queue(document)) == {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": "vision", "annotations": {"hekla.io/cluster": "sim"}},
        "spec": {"weight": 1, "reclaimable": True, "guarantee": {"resource": {"cpu": "2"}}},
        "status": {"state": "Closed"},
    }


_AMOUNTS = st.dictionaries(st.sampled_from(["cpu", "memory", "nvidia.com/gpu"]), AMOUNTS)


@settings(max_examples=examples(100), deadline=None)
@given(
    st.fixed_dictionaries(
        {
            "name": LABELS,
            "cluster": LABELS,
            "description": LINES,
            "weight": st.integers(1, 65_535),
            "priority": st.integers(0, 1000),
            "capability": _AMOUNTS,
            "guarantee": _AMOUNTS,
            "deserved": _AMOUNTS,
            "parent": st.none() | LABELS.filter(lambda name: name != "root"),
            "reclaimable": st.booleans(),
            "state": st.sampled_from(["open", "draining", "closed"]),
            "tenants": st.lists(LABELS, max_size=3),
            "job_order": st.sampled_from(["", "fifo", "fair", "priority", "sla"]),
            **{field: st.lists(LABELS, max_size=2) for field in queue_settings.AFFINITY},
            "node_group_limits": st.dictionaries(LABELS, _AMOUNTS, max_size=2),
            "card_quota": st.dictionaries(LABELS, st.integers(0, 99), max_size=2),
            "hierarchy": st.sampled_from(["", "root/a/b"]),
            "hierarchy_weights": st.sampled_from(["", "1/2/3.5"]),
        }
    )
)
def test_round_trip(document: dict[str, object]) -> None:
    loaded = formats.load_queue(formats.dump_queue(document))
    assert {**USUAL, **loaded.document} == document
    assert loaded.warnings == ()


WORDS = st.sampled_from(["metadata", "name", "annotations", "spec", "guarantee", "resource", "status", "state"])
TREES = st.recursive(
    st.sampled_from([None, True, 3, 0.5, "", "root"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=15,
)


@given(st.dictionaries(WORDS, TREES))
def test_any_document_is_read_or_refused(fields: dict[str, object]) -> None:
    assert outcome(yaml.safe_dump({**yaml.safe_load(MANIFEST), **fields}))


def outcome(text: str) -> object:
    try:
        return formats.load_queue(text)
    except Invalid as error:
        return error.problems


def test_queue_is_not_a_job() -> None:
    with pytest.raises(Invalid) as raised:
        formats.load(MANIFEST)
    assert "which is not a job: operators and platform admins create queues" in raised.value.problems[0].message
