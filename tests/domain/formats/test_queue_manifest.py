"""Volcano Queues in and out."""

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.domain.specs import AMOUNTS, LABELS, LINES
from tests.support.examples import examples

from hekla.domain import formats
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
    "reclaimable": True, "state": "open", "tenants": [],
}  # fmt: skip


def test_it_is_read_whole() -> None:
    loaded = formats.load_queue(MANIFEST)
    assert loaded.warnings == ()
    assert loaded.document == {
        "name": "vision", "cluster": "sim", "description": "Cameras", "tenants": ["lab", "other"], "weight": 3,
        "priority": 7, "capability": {"cpu": "8", "memory": "16Gi"}, "deserved": {"cpu": 4}, "guarantee": {"cpu": "2"},
        "reclaimable": False, "parent": "research",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "places"),
    [
        ("weight: 3", "affinity: {nodeGroupAffinity: {required: [a]}}", ["spec.affinity"]),
        ("weight: 3", "type: x\n  extendClusters: [{name: y}]", ["spec.type", "spec.extendClusters"]),
        ("weight: 3", "dequeueStrategy: fifo", ["spec.dequeueStrategy"]),
        ("weight: 3", "dequeueStrategy: traverse", []),
        ("name: vision", "name: vision\n  namespace: x\n  labels: {a: b}", ["metadata.namespace", "metadata.labels"]),
        (
            "{hekla.io/cluster: sim,",
            "{volcano.sh/hierarchy: root/a,",
            ["metadata.annotations.volcano.sh/hierarchy"],
        ),
        ("{resource: {cpu", "{rate: 1, resource: {cpu", ["spec.guarantee.rate"]),
        ("kind: Queue", "kind: Queue\ndata: 1", ["data"]),
        ("status:", "---\nkind: Job\n---\n", ["document 2", "document 3"]),
    ],
)
def test_what_has_no_effect_is_named(old: str, new: str, places: list[str]) -> None:
    loaded = formats.load_queue(MANIFEST.replace(old, new))
    assert [warning.partition(": ignored")[0] for warning in loaded.warnings] == places


@pytest.mark.parametrize(
    ("text", "path", "says"),
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
def test_what_is_no_such_manifest_is_refused(text: str, path: str, says: str) -> None:
    with pytest.raises(Invalid) as raised:
        formats.load_queue(text)
    assert any(problem.path == path and says in problem.message for problem in raised.value.problems)


def test_where_it_does_not_name_its_cluster_that_is_the_only_one() -> None:
    loaded = formats.load_queue(MANIFEST.replace("hekla.io/cluster: sim, ", ""))
    assert loaded.placed(["here"])["cluster"] == "here"
    for clusters, says in ((["here", "there"], "here, there"), ([], "No cluster exists yet")):
        with pytest.raises(Invalid) as raised:
            loaded.placed(clusters)
        assert raised.value.problems[0].path == "metadata.annotations.hekla.io/cluster"
        assert says in raised.value.problems[0].message
    assert formats.load_queue(MANIFEST).placed(["here", "there"])["cluster"] == "sim"


def test_the_root_of_all_queues_is_no_parent() -> None:
    loaded = formats.load_queue(MANIFEST.replace("parent: research", "parent: root"))
    assert "parent" not in loaded.document


def test_what_is_refused_is_refused_at_its_place_in_the_manifest() -> None:
    told = formats.load_queue(MANIFEST).findings.translate_paths(Refused("Less, please.", "guarantee.cpu"))
    assert isinstance(told, Refused)
    assert told.path == "spec.guarantee.resource.cpu"


def test_what_is_written_is_the_kind_that_it_says() -> None:
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
        }
    )
)
def test_there_and_back_it_is_the_same(document: dict[str, object]) -> None:
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
def test_any_tree_is_a_queue_or_gets_problems(said: dict[str, object]) -> None:
    assert outcome(yaml.safe_dump({**yaml.safe_load(MANIFEST), **said}))


def outcome(text: str) -> object:
    try:
        return formats.load_queue(text)
    except Invalid as error:
        return error.problems


def test_where_a_job_is_expected_it_is_said_where_queues_are_made() -> None:
    with pytest.raises(Invalid) as raised:
        formats.load(MANIFEST)
    assert "which is not a job: operators and platform admins create queues" in raised.value.problems[0].message
