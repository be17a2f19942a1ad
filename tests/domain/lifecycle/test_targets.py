"""A wish about a part of a job says which part, and one about the whole does not."""

import pytest
from tests.domain.lifecycle.worlds import spec

from hekla.domain.errors import Invalid
from hekla.domain.lifecycle import ActionTarget, target_of
from hekla.domain.policies import PARTIAL_ACTIONS, LifecycleAction

JOB = spec({"name": "ps"}, {"name": "worker", "replicas": 3})


@pytest.mark.parametrize(
    ("action", "task", "index", "target"),
    [
        (LifecycleAction.RESTART_JOB, "", None, None),
        (LifecycleAction.ABORT_JOB, "", None, None),
        (LifecycleAction.RESTART_TASK, "worker", None, ActionTarget("worker")),
        (LifecycleAction.RESTART_POD, "worker", 2, ActionTarget("worker", 2)),
        (LifecycleAction.RESTART_PARTITION, "worker", 0, ActionTarget("worker", 0)),
    ],
)
def test_it_is_the_part_that_was_named(action, task, index, target):
    assert target_of(JOB, action, task, index) == target


@pytest.mark.parametrize(
    ("action", "task", "index", "path", "words"),
    [
        (LifecycleAction.RESTART_TASK, "", None, "task", "Available: ps, worker"),
        (LifecycleAction.RESTART_TASK, "workr", None, "task", "Did you mean “worker”"),
        (LifecycleAction.RESTART_TASK, "worker", 1, "index", "use RestartPod"),
        (LifecycleAction.RESTART_POD, "worker", None, "index", "Give its index"),
        (LifecycleAction.RESTART_POD, "worker", 3, "index", "has 3 replicas"),
        (LifecycleAction.RESTART_POD, "worker", -1, "index", "Index -1 does not exist"),
        (LifecycleAction.RESTART_POD, "", 1, "task", "Name the task"),
        (LifecycleAction.RESTART_PARTITION, "worker", None, "index", "Give its index"),
        (LifecycleAction.ABORT_JOB, "worker", None, "task", "applies to the whole job"),
        (LifecycleAction.RESTART_JOB, "", 0, "index", "applies to the whole job"),
    ],
)
def test_what_is_not_clear_is_refused_where_it_is_not(action, task, index, path, words):
    with pytest.raises(Invalid) as raised:
        target_of(JOB, action, task, index)
    assert [(problem.path, words in problem.message) for problem in raised.value.problems] == [(path, True)]


@pytest.mark.parametrize("action", sorted(PARTIAL_ACTIONS))
def test_no_part_is_ever_guessed(action):
    with pytest.raises(Invalid):
        target_of(JOB, action, "", None)
