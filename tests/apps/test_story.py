"""What a job's timeline says of what happened to it."""

from typing import Any

import pytest

from hekla.apps.jobs import story
from hekla.apps.outbox.models import Event
from hekla.lib import clock


def told(kind: str, **facts: Any) -> tuple[str, str]:
    """State and sentence of one event."""
    (line,) = story.lines([Event(pk=1, at=clock.now(), kind=kind, payload=facts)])
    return line.state, line.sentence


def pod(new: str, **more: Any) -> dict[str, Any]:
    plain = {
        "task": "worker",
        "index": 7,
        "old": "running",
        "reason": "",
        "message": "",
        "exit_code": None,
        "node": "n1",
    }
    return {**plain, "new": new, **more}


@pytest.mark.parametrize(
    ("facts", "state", "sentence"),
    [
        (pod("running"), "running", "worker-7 runs on n1."),
        (pod("succeeded", exit_code=0), "done", "worker-7 succeeded."),
        (pod("failed", reason="Error", exit_code=3), "failed", "worker-7 failed. Exit code 3."),
        (pod("lost"), "failed", "worker-7 was lost."),
    ],
)
def test_what_became_of_a_pod(facts: dict[str, Any], state: str, sentence: str) -> None:
    assert told("PodPhaseChanged", **facts) == (state, sentence)


def test_a_pod_that_ends_because_it_was_asked_to_did_not_fail() -> None:
    facts = pod("failed", reason="Stopped", message="preempt", exit_code=143)
    assert told("PodPhaseChanged", **facts) == ("stopped", "worker-7 has ended, as it was asked to.")


def test_a_tag_is_told() -> None:
    assert told("JobTagged", tag="odd") == ("neutral", "Tagged “odd”.")
    assert told("JobTagged", tag="odd", is_on=False) == ("neutral", "The tag “odd” was taken off.")
