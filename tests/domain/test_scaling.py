"""What the size of a job may become, and what follows from it for its pods."""

import pytest
from tests.domain.lifecycle.worlds import World, spec

from hekla.domain.errors import Invalid
from hekla.domain.frameworks import settings_for
from hekla.domain.jobspec import JobSpec
from hekla.domain.lifecycle import PodRef
from hekla.domain.phases import PodPhase
from hekla.domain.scaling import JobScale, immutable_fields, remarks, resize, size_changes


def size(**tasks) -> JobScale:
    return JobScale.parse({"tasks": {name: {"replicas": replicas} for name, replicas in tasks.items()}})


def test_a_job_that_grows_can_do_with_as_few_as_before():
    old = spec({"replicas": 2}, {"replicas": 1})
    new = resize(old, size(task0=5))
    assert (new.replicas, new.gang_minimum, new.task("task0").minimum) == (6, 3, 2)
    assert size_changes(old, new) == {"task0.replicas": (2, 5)}
    assert resize(new, size(task0=5)) == new
    assert JobSpec.parse(new.document()) == new


@pytest.mark.parametrize(
    ("wish", "path", "words"),
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
def test_a_size_that_cannot_be_is_refused_where_it_is_wrong(wish, path, words):
    with pytest.raises(Invalid) as caught:
        resize(spec({"replicas": 2}, {"replicas": 1}), JobScale.parse(wish))
    told = {problem.path: problem.message for problem in caught.value.problems}
    assert words in told[path]


def test_what_is_not_size_is_the_same_in_every_size():
    job = spec({"replicas": 2, "env": {"A": "1"}}, min_available=1)
    assert immutable_fields(resize(job, size(task0=7))) == immutable_fields(job)
    assert immutable_fields(spec({"replicas": 2, "env": {"A": "2"}})) != immutable_fields(job)


def test_the_last_replicas_go_and_no_policy_calls_it_a_failure():
    rules = [{"events": ["*"], "action": "RestartJob"}]
    world = World(spec({"replicas": 4, "min_available": 1}, policies=rules)).start()
    world.scale(tasks={"task0": {"replicas": 2}})
    leaving = [PodRef("task0", 2, 1), PodRef("task0", 3, 1)]
    assert (world.last.stop, world.last.surplus) == (tuple(leaving), frozenset(leaving))
    world.stopped_pods_end()
    assert (world.phase, world.job.retry_count, world.job.version) == ("running", 0, 1)


def test_a_replica_that_comes_back_begins_anew_also_where_it_had_succeeded():
    world = World(spec({"replicas": 3, "min_available": 1})).start()
    world.report(PodPhase.SUCCEEDED, [PodRef("task0", 2, 1)])
    world.scale(tasks={"task0": {"replicas": 2}})
    world.scale(tasks={"task0": {"replicas": 4}})
    assert world.last.create == (PodRef("task0", 2, 2), PodRef("task0", 3, 1))


def test_news_of_a_replica_that_is_wanted_no_more_come_to_nothing():
    rules = [{"events": ["PodEvicted"], "action": "RestartJob"}]
    world = World(spec({"replicas": 2, "min_available": 1}, policies=rules)).start()
    world.evict(PodRef("task0", 1, 1))
    world.scale(tasks={"task0": {"replicas": 1}})
    world.report(PodPhase.FAILED, [PodRef("task0", 1, 1)], exit_code=143)
    assert (world.phase, world.job.retry_count) == ("running", 0)


def test_a_job_that_needs_more_than_run_waits_for_them():
    world = World(spec({"replicas": 4, "min_available": 1})).start()
    world.scale(tasks={"task0": {"replicas": 6, "min_available": 6}})
    assert (world.phase, world.last.create) == ("pending", (PodRef("task0", 4, 1), PodRef("task0", 5, 1)))


def test_new_pods_are_told_all_and_old_ones_are_said_to_know_less():
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
def test_what_running_pods_do_not_learn_depends_on_their_framework(plugins, rules, words):
    told = remarks(spec({"replicas": 2}, plugins=plugins, policies=rules))
    assert [word in sentence for word, sentence in zip(words, told, strict=True)] == [True] * len(words)


def test_a_torchrun_that_can_take_more_pods_than_there_are_is_right():
    job = spec({"replicas": 4, "min_available": 2}, plugins={"pytorch": ["--master=task0", "--nnodes=2:4"]})
    less = resize(job, size(task0=3))
    assert less.task("task0").replicas == 3
    assert "exceeds the current 3 pods" in less.remarks[0]
