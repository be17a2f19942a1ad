"""What a job's timeline says of what happened to it."""

from typing import Any

import pytest

from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.job_history import history
from hekla.lib import clock


def told(kind: str, **facts: Any) -> tuple[str, str]:
    """State and sentence of one event."""
    (line,) = history.lines([LoggedEvent(pk=1, at=clock.now(), kind=kind, payload=facts)])
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
        (pod("running"), "running", "worker-7 is running on n1."),
        (pod("succeeded", exit_code=0), "done", "worker-7 succeeded."),
        (pod("failed", reason="Error", exit_code=3), "failed", "worker-7 failed. Exit code 3."),
        (pod("lost"), "failed", "worker-7 was lost."),
    ],
)
def test_what_became_of_a_pod(facts: dict[str, Any], state: str, sentence: str) -> None:
    assert told("PodPhaseChanged", **facts) == (state, sentence)


def test_a_pod_that_ends_because_it_was_asked_to_did_not_fail() -> None:
    facts = pod("failed", reason="Stopped", message="preempt", exit_code=143)
    assert told("PodPhaseChanged", **facts) == ("stopped", "worker-7 stopped on request.")


def test_a_tag_is_told() -> None:
    assert told("JobTagged", tag="odd") == ("neutral", "Tag “odd” added.")
    assert told("JobTagged", tag="odd", is_on=False) == ("neutral", "Tag “odd” removed.")


@pytest.mark.parametrize(
    ("reason", "message", "sentence"),
    [
        ("Error", "Its process ended with exit code 3", "worker-7 failed. Exit code 3."),
        ("SIGSEGV", "Its process was ended by SIGSEGV", "worker-7 failed. Exit code 3."),
        (
            "OOMKilled",
            "x",
            "worker-7 failed. Exit code 3. The pod exceeded its memory request and was stopped.",
        ),
        (
            "CommandNotFound",
            "There is no command “x” here",
            "worker-7 failed. Exit code 3. There is no command “x” here",
        ),
    ],
)
def test_what_the_exit_code_says_already_is_not_said_twice(reason: str, message: str, sentence: str) -> None:
    assert told("PodPhaseChanged", **pod("failed", reason=reason, message=message, exit_code=3))[1] == sentence


@pytest.mark.parametrize(
    ("reason", "words"),
    [("AbortRequested", "the job was aborted"), ("MadeUp", "MadeUp"), ("Restarting", "the job restarts")],
)
def test_why_a_pod_is_asked_to_stop_is_told_in_words(reason: str, words: str) -> None:
    facts = {"task": "worker", "index": 7, "attempt": 1, "reason": reason, "message": ""}
    assert told("PodStopRequested", **facts) == ("stopped", f"worker-7 is stopping ({words}).")
