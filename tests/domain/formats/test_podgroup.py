"""Reading PodGroups together with jobs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hekla.domain import formats, yaml_text
from hekla.domain.errors import Invalid
from hekla.domain.resources import Resources

NAMED = {"scheduling.k8s.io/group-name": "gang"}
NAMED_BY_VOLCANO = {"scheduling.volcano.sh/group-name": "gang"}


def group(name="gang", annotations=None, version="v1beta1", **spec):
    metadata = {"name": name, "annotations": annotations or {}}
    return {
        "apiVersion": f"scheduling.volcano.sh/{version}", "kind": "PodGroup", "metadata": metadata, "spec": spec,
    }  # fmt: skip


def template(annotations=None):
    container = {"name": "main", "command": ["true"], "resources": {"requests": {"cpu": "2"}}}
    return {"metadata": {"annotations": annotations or {}}, "spec": {"containers": [container]}}


def batch(pods=None, name="fit", annotations=None, **spec):
    fields = {"parallelism": 4, "completions": 4, "backoffLimit": 0, "template": template(pods), **spec}
    metadata = {"name": name, "annotations": annotations or {}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": fields}


def volcano(pods=None, **spec):
    tasks = [{"name": name, "replicas": count, "template": template(pods)} for name, count in (("ps", 1), ("w", 4))]
    fields = {"tasks": tasks, **spec}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "fit"}, "spec": fields}


def torch(pods=None, **scheduling):
    replicas = {"Worker": {"replicas": 4, "restartPolicy": "Never", "template": template(pods)}}
    fields = {"runPolicy": {"schedulingPolicy": scheduling}, "pytorchReplicaSpecs": replicas}
    return {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "fit"}, "spec": fields}


def load(*documents):
    """The job, and the ignored paths."""
    loaded = formats.load(yaml_text.write(list(documents)))
    return loaded.spec, [warning.partition(": ignored")[0] for warning in loaded.warnings]


OTHER = {"scheduling.volcano.sh/group-name": "b"}
JOBS = [batch, volcano, torch]


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize("names", [None, NAMED, NAMED_BY_VOLCANO])
@pytest.mark.parametrize("first", [True, False])
def test_group_sets_the_minimum_and_the_queue(job, names, first):
    pod_group = group(minMember=3, queue="vision")
    spec, ignored = load(pod_group, job(names)) if first else load(job(names), pod_group)
    assert (spec.min_available, spec.queue, ignored) == (3, "vision", [])


@pytest.mark.parametrize(
    ("job", "group_fields", "ignored"),
    [
        (batch(), {"minMember": 3, "subGroupPolicy": [{"name": "a"}]}, ["PodGroup gang.spec.subGroupPolicy"]),
        (batch(), {"minMember": 3, "minTaskMember": {"ps": 1}}, ["PodGroup gang.spec.minTaskMember.ps"]),
        (volcano(minAvailable=2), {"minMember": 3}, ["spec.minAvailable"]),
        (volcano(minAvailable=3, queue="default"), {"minMember": 3, "queue": "default"}, []),
        (volcano(queue="b"), {"minMember": 3, "queue": "a"}, ["spec.queue"]),
        (torch(minAvailable=4), {"minMember": 3}, ["spec.runPolicy.schedulingPolicy.minAvailable"]),
    ],
)
def test_ignored_fields_are_reported(job, group_fields, ignored):
    spec, found = load(job, group(**group_fields))
    assert (spec.min_available, found) == (3, ignored)


@pytest.mark.parametrize("job", [batch(), volcano(), torch()])
def test_group_sets_the_resources_for_admission(job):
    spec, ignored = load(job, group(minMember=3, minResources={"cpu": 6000, "memory": "1Gi"}))
    assert (dict(spec.min_resources), ignored) == ({"cpu": "6000", "memory": "1Gi"}, [])
    assert spec.admission_resources == Resources.parse({"cpu": 6000, "memory": "1Gi"})


def test_empty_group_changes_nothing():
    assert load(volcano(minAvailable=2, queue="a"), group(minMember=0, queue="")) == load(
        volcano(minAvailable=2, queue="a")
    )


def test_all_completions_are_still_required():
    spec, _ = load(batch(), group(minMember=2))
    assert (spec.min_available, spec.min_success) == (2, 4)


def test_task_minimums_and_annotations_are_in_the_job():
    waits = {"sla-waiting-time": "1h"}
    spec, ignored = load(volcano(), group(annotations=waits, minMember=3, minTaskMember={"ps": 1, "w": 2}))
    assert [task.min_available for task in spec.tasks] == [1, 2]
    assert (spec.annotations, ignored) == (waits, [])


def test_group_named_by_the_pods_applies():
    spec, ignored = load(group("other", minMember=2), batch(NAMED), group(minMember=3))
    assert (spec.min_available, ignored) == (3, ["PodGroup other"])


def test_unused_groups_are_reported():
    elsewhere = {"scheduling.k8s.io/group-name": "elsewhere"}
    spec, ignored = load(batch(elsewhere), group(minMember=3))
    assert spec.min_available == 1
    assert sorted(path.rpartition(".")[2] for path in ignored) == ["PodGroup gang", "io/group-name"]
    assert load(batch(), group(minMember=2), group("b"))[1] == ["PodGroup gang", "PodGroup b"]


@pytest.mark.parametrize(
    ("documents", "path", "message"),
    [
        ([group(minMember=3)], "", "Put both into one text"),
        ([batch(), group(minMember=5)], "PodGroup gang.spec.minMember", "4 replicas"),
        ([batch(), group(minMember="3")], "PodGroup gang.spec.minMember", ""),
        ([batch(), group(minMember=True)], "PodGroup gang.spec.minMember", ""),
        ([batch(), group(minMembers=3)], "PodGroup gang.spec.minMembers", "Did you mean “minMember”"),
        ([batch(), group(minResources=[1])], "PodGroup gang.spec.minResources", "Must be a mapping"),
        ([volcano(), group(minTaskMember={"w": 5})], "PodGroup gang.spec.minTaskMember.w", "4 replicas"),
        ([batch(), group(version="v1")], "PodGroup gang.apiVersion", "scheduling.volcano.sh/v1beta1"),
        (
            [batch(NAMED, annotations=OTHER), group(), group("b")],
            "PodGroup",
            "and b",
        ),
    ],
)
def test_invalid_group_is_refused_with_its_path(documents, path, message):
    with pytest.raises(Invalid) as raised:
        load(*documents)
    assert any(problem.path == path and message in problem.message for problem in raised.value.problems)


def test_each_of_several_jobs_has_its_group():
    second = {"scheduling.k8s.io/group-name": "second"}
    documents = [group(minMember=3), batch(NAMED), group("second", minMember=2), batch(second, name="b")]
    loaded = formats.load_many(yaml_text.write(documents))
    assert [(one.spec.min_available, one.warnings) for one in loaded] == [(3, ()), (2, ())]
    assert formats.load_many(yaml_text.write([batch(), group(minMember=3)]))[0].spec.min_available == 3


@pytest.mark.parametrize(
    ("documents", "path"),
    [
        ([group()], ""),
        ([batch(NAMED), batch(name="b"), group(), group("stray")], "document 4"),
        ([group(), {"name": "c", "tasks": [{"name": "t", "command": ["true"]}]}], "document 1"),
    ],
)
def test_unused_groups_of_several_jobs_are_refused(documents, path):
    with pytest.raises(Invalid) as raised:
        formats.load_many(yaml_text.write(documents))
    assert [problem.path for problem in raised.value.problems] == [path]


WORDS = st.sampled_from(["metadata", "name", "annotations", "spec", "minMember", "minTaskMember", "queue", "tasks"])
TREES = st.recursive(
    st.sampled_from([None, True, 3, 0.5, "", "gang", "main"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=15,
)


@given(st.dictionaries(WORDS, TREES), st.dictionaries(WORDS, TREES))
def test_any_document_is_read_or_refused(group_fields, fields):
    documents = [{**group(), **group_fields}, {**volcano(), **fields}]
    assert outcome(yaml_text.write(documents))


def outcome(text):
    try:
        return formats.load(text).spec
    except Invalid as error:
        return error.problems
