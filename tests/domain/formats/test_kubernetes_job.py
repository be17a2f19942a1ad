"""Reading and writing Kubernetes Jobs."""

import pytest

from hekla.domain import formats, yaml_text
from hekla.domain.errors import Invalid

RESTARTS = {"events": ["PodFailed"], "action": "RestartPod"}
ENDS = {"events": ["PodFailed"], "action": "TerminateJob"}
EVICTED = {"events": ["PodEvicted"], "action": "RestartPod"}


def manifest(annotations=None, container=None, **fields):
    pod = {"restartPolicy": "OnFailure", "containers": [container or {"name": "pi", "command": ["perl"]}]}
    metadata = {"name": "pi", "annotations": annotations or {}}
    spec = {**fields, "template": {"spec": pod}}
    return yaml_text.write([{"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}])


def read(text):
    """The fields of the job, without those that all have, and the ignored paths."""
    loaded = formats.load(text)
    document = loaded.spec.document()
    (task,) = document.pop("tasks")
    fields = {**document, **task}
    for name in ("name", "command"):
        fields.pop(name)
    return fields, [warning.partition(": ignored")[0] for warning in loaded.warnings]


SIX = {"max_retry": 6, "policies": [RESTARTS]}
INDEXED = {"plugins": {"indexed": []}}


@pytest.mark.parametrize(
    ("text", "expected", "ignored"),
    [
        (manifest(), SIX, []),
        (
            manifest(
                backoffLimit=0,
                podFailurePolicy={"rules": [{"action": "Count", "onExitCodes": {"operator": "In", "values": [3]}}]},
            ),
            {},
            [],
        ),
        (manifest(backoffLimit=0), {}, []),
        (
            manifest(backoffLimit=2, ttlSecondsAfterFinished=9),
            SIX | {"max_retry": 2, "ttl_seconds_after_finished": 9},
            [],
        ),
        (
            manifest(parallelism=4, completions=4, backoffLimit=0),
            {"replicas": 4, "min_available": 1, "min_success": 4, "policies": [ENDS]},
            [],
        ),
        (manifest(parallelism=4), SIX | {"replicas": 4, "min_available": 1}, []),
        (
            manifest(completions=9, parallelism=3),
            SIX | {"replicas": 9, "min_available": 1, "min_success": 9},
            ["spec.parallelism"],
        ),
        (
            manifest({"scheduling.volcano.sh/group-min-member": "4"}, completions=4, completionMode="Indexed"),
            SIX | INDEXED | {"replicas": 4},
            [],
        ),
        (
            manifest({"scheduling.volcano.sh/group-min-member": "2"}, completions=4),
            SIX | {"replicas": 4, "min_available": 2, "min_success": 4},
            [],
        ),
        (
            manifest({"scheduling.volcano.sh/queue-name": "research"}, suspend=True, activeDeadlineSeconds=5),
            SIX | {"queue": "research", "active_deadline_seconds": 5},
            ["spec.suspend"],
        ),
        (
            manifest(completions=5, completionMode="Indexed", successPolicy={"rules": [{"succeededCount": 2}]}),
            SIX | INDEXED | {"replicas": 5, "min_available": 1, "min_success": 2},
            [],
        ),
        (
            manifest(completionMode="Indexed", successPolicy={"rules": [{"succeededIndexes": "0"}]}),
            SIX | INDEXED,
            ["spec.successPolicy.rules[0]"],
        ),
        (
            manifest(
                podFailurePolicy={
                    "rules": [
                        {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [3, 4]}},
                        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
                        {"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [5]}},
                        {"action": "FailJob", "onExitCodes": {"operator": "NotIn", "values": [6]}},
                    ]
                }
            ),
            {
                "max_retry": 6,
                "policies": [
                    {"exit_code": 3, "action": "TerminateJob"},
                    {"exit_code": 4, "action": "TerminateJob"},
                    EVICTED,
                    RESTARTS,
                ],
            },
            ["spec.podFailurePolicy.rules[2]", "spec.podFailurePolicy.rules[3]"],
        ),
        (
            manifest(backoffLimitPerIndex=1, podReplacementPolicy="Failed"),
            SIX,
            ["spec.backoffLimitPerIndex", "spec.podReplacementPolicy"],
        ),
    ],
    ids=range(14),
)
def test_job_is_read(text, expected, ignored):
    assert read(text) == (expected, ignored)


@pytest.mark.parametrize(("name", "task"), [("trainer", "trainer"), ("", "main"), ("Not_a_task", "main")])
def test_task_has_the_name_of_its_container(name, task):
    loaded = formats.load(manifest(container={"name": name, "command": ["run"]}))
    assert loaded.spec.tasks[0].name == task


@pytest.mark.parametrize(
    ("text", "path", "sentence"),
    [
        (manifest(completions=0), "spec.template", "No task has replicas"),
        (manifest(completions="x"), "spec.completions", "an integer"),
        (manifest(parallelism=-1), "spec.parallelism", "at least 0"),
        (
            manifest({"scheduling.volcano.sh/group-min-member": "x"}),
            "metadata.annotations.scheduling.volcano.sh/group-min-member",
            "in quotes",
        ),
        (
            manifest({"scheduling.volcano.sh/group-min-member": "9"}, completions=2),
            "group-min-member",
            "never be reached",
        ),
        (manifest(successPolicy={"rules": [{"succeededCount": 3}]}), "rules[0].succeededCount", "never be reached"),
        (manifest(paralelism=3), "spec.paralelism", "Did you mean “parallelism”?"),
    ],
    ids=range(7),
)
def test_problem_has_its_path(text, path, sentence):
    with pytest.raises(Invalid) as raised:
        formats.load(text)
    assert [p for p in raised.value.problems if p.path.endswith(path) and sentence in p.message], raised.value.problems
