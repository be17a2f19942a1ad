"""Targets of actions: partial actions need one, actions on the whole job refuse it."""

import pytest
from tests.domain.lifecycle.harness import spec

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
def test_target_is_the_named_part(action, task, index, target):
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
def test_unclear_target_is_refused_with_its_path(action, task, index, path, words):
    with pytest.raises(Invalid) as raised:
        target_of(JOB, action, task, index)
    assert [(problem.path, words in problem.message) for problem in raised.value.problems] == [(path, True)]


@pytest.mark.parametrize("action", sorted(PARTIAL_ACTIONS))
def test_target_has_no_default(action):
    with pytest.raises(Invalid):
        target_of(JOB, action, "", None)
