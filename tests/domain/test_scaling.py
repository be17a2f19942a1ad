"""Resizing a submitted job, and the consequences for its pods."""

import pytest
from tests.domain.lifecycle.harness import JobHarness, spec

from hekla.domain.errors import Invalid
from hekla.domain.frameworks import settings_for
from hekla.domain.jobspec import JobSpec
from hekla.domain.lifecycle import PodRef
from hekla.domain.phases import PodPhase
from hekla.domain.scaling import JobScale, immutable_fields, remarks, resize, size_changes


def size(**tasks) -> JobScale:
    return JobScale.parse({"tasks": {name: {"replicas": replicas} for name, replicas in tasks.items()}})


def test_growing_job_keeps_its_minimum():
    old = spec({"replicas": 2}, {"replicas": 1})
    new = resize(old, size(task0=5))
    assert (new.replicas, new.gang_minimum, new.task("task0").minimum) == (6, 3, 2)
    assert size_changes(old, new) == {"task0.replicas": (2, 5)}
    assert resize(new, size(task0=5)) == new
    assert JobSpec.parse(new.document()) == new


@pytest.mark.parametrize(
    ("size_document", "path", "words"),
    [
        ({"tasks": {"task0": {"replicas": 1}}}, "tasks.task0.min_available", "so 2 cannot be available"),
        ({"tasks": {"task0": {"min_available": 3}}}, "tasks.task0.min_available", "The task has 2 replicas"),
        ({"tasks": {"tusk0": {"replicas": 1}}}, "tasks.tusk0", "Did you mean “task0”"),
        ({"min_available": 4}, "min_available", "The tasks have 3 replicas in total"),
        ({"tasks": {"task0": {"replicas": -1}}}, "tasks.task0.replicas", "at least 0"),
        ({"tasks": {"task0": {"replicas": 10_000}}}, "tasks", "The limit is 10,000"),
        ({"tasks": {"task0": {"replicas": "4"}}}, "tasks.task0.replicas", "an integer"),
        ({"priority": 3}, "priority", "Unknown field"),
    ],
)
def test_invalid_size_is_refused_with_its_path(size_document, path, words):
    with pytest.raises(Invalid) as caught:
        resize(spec({"replicas": 2}, {"replicas": 1}), JobScale.parse(size_document))
    found = {problem.path: problem.message for problem in caught.value.problems}
    assert words in found[path]


def test_resize_keeps_immutable_fields():
    job = spec({"replicas": 2, "env": {"A": "1"}}, min_available=1)
    assert immutable_fields(resize(job, size(task0=7))) == immutable_fields(job)
    assert immutable_fields(spec({"replicas": 2, "env": {"A": "2"}})) != immutable_fields(job)


def test_shrinking_stops_the_last_replicas_without_policies():
    rules = [{"events": ["*"], "action": "RestartJob"}]
    harness = JobHarness(spec({"replicas": 4, "min_available": 1}, policies=rules)).start()
    harness.scale(tasks={"task0": {"replicas": 2}})
    leaving = [PodRef("task0", 2, 1), PodRef("task0", 3, 1)]
    assert (harness.last.stop, harness.last.surplus) == (tuple(leaving), frozenset(leaving))
    harness.stopped_pods_end()
    assert (harness.phase, harness.job.retry_count, harness.job.version) == ("running", 0, 1)


def test_replica_that_comes_back_gets_a_new_attempt():
    harness = JobHarness(spec({"replicas": 3, "min_available": 1})).start()
    harness.report(PodPhase.SUCCEEDED, [PodRef("task0", 2, 1)])
    harness.scale(tasks={"task0": {"replicas": 2}})
    harness.scale(tasks={"task0": {"replicas": 4}})
    assert harness.last.create == (PodRef("task0", 2, 2), PodRef("task0", 3, 1))


def test_events_of_removed_replicas_are_ignored():
    rules = [{"events": ["PodEvicted"], "action": "RestartJob"}]
    harness = JobHarness(spec({"replicas": 2, "min_available": 1}, policies=rules)).start()
    harness.evict(PodRef("task0", 1, 1))
    harness.scale(tasks={"task0": {"replicas": 1}})
    harness.report(PodPhase.FAILED, [PodRef("task0", 1, 1)], exit_code=143)
    assert (harness.phase, harness.job.retry_count) == ("running", 0)


def test_job_with_a_higher_minimum_waits_for_its_pods():
    harness = JobHarness(spec({"replicas": 4, "min_available": 1})).start()
    harness.scale(tasks={"task0": {"replicas": 6, "min_available": 6}})
    assert (harness.phase, harness.last.create) == ("pending", (PodRef("task0", 4, 1), PodRef("task0", 5, 1)))


def test_new_pods_get_all_addresses_and_a_remark_covers_old_ones():
    job = JobSpec.parse(
        {"name": "job", "plugins": {"tensorflow": []}, "tasks": [{"name": "worker", "command": ["x"], "replicas": 2}]}
    )
    grown = resize(job, size(worker=3))
    hosts = {("worker", index): f"10.0.0.{index}" for index in range(3)}
    assert '"10.0.0.2:2222"' in settings_for(grown, "worker", 2, hosts).env["TF_CONFIG"]
    assert ["TF_CONFIG" in remark for remark in remarks(grown)] == [True]


@pytest.mark.parametrize(
    ("plugins", "rules", "words"),
    [
        ({"pytorch": ["--master=task0"]}, [], ["WORLD_SIZE"]),
        ({"pytorch": ["--master=task0", "--nnodes=1:2"]}, [], ["torchrun makes a new rendezvous"]),
        ({"env": []}, [], []),
        ({"svc": []}, [{"events": ["JobUpdated"], "action": "RestartJob"}], []),
    ],
)
def test_remarks_on_running_pods_depend_on_the_framework(plugins, rules, words):
    found = remarks(spec({"replicas": 2}, plugins=plugins, policies=rules))
    assert [word in sentence for word, sentence in zip(words, found, strict=True)] == [True] * len(words)


def test_nnodes_may_exceed_the_pods_with_a_remark():
    job = spec({"replicas": 4, "min_available": 2}, plugins={"pytorch": ["--master=task0", "--nnodes=2:4"]})
    less = resize(job, size(task0=3))
    assert less.task("task0").replicas == 3
    assert "exceeds the current 3 pods" in less.remarks[0]
