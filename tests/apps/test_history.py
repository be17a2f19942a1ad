"""Sentences of events in the history of a job."""

from typing import Any

import pytest

from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.job_history import history
from hekla.lib import clock


def describe(kind: str, **facts: Any) -> tuple[str, str]:
    """State and sentence of one event."""
    (line,) = history.lines([LoggedEvent(pk=1, at=clock.now(), kind=kind, payload=facts)])
    return line.state, line.sentence


def pod(new: str, **more: Any) -> dict[str, Any]:
    defaults = {
        "task": "worker",
        "index": 7,
        "old": "running",
        "reason": "",
        "message": "",
        "exit_code": None,
        "node": "n1",
    }
    return {**defaults, "new": new, **more}


@pytest.mark.parametrize(
    ("facts", "state", "sentence"),
    [
        (pod("running"), "running", "worker-7 is running on n1."),
        (pod("succeeded", exit_code=0), "done", "worker-7 succeeded."),
        (pod("failed", reason="Error", exit_code=3), "failed", "worker-7 failed. Exit code 3."),
        (pod("lost"), "failed", "worker-7 was lost."),
    ],
)
def test_pod_phases(facts: dict[str, Any], state: str, sentence: str) -> None:
    assert describe("PodPhaseChanged", **facts) == (state, sentence)


def test_stopped_pod_did_not_fail() -> None:
    facts = pod("failed", reason="Stopped", message="preempt", exit_code=143)
    assert describe("PodPhaseChanged", **facts) == ("stopped", "worker-7 stopped on request.")


def test_tags() -> None:
    assert describe("JobTagged", tag="odd") == ("neutral", "Tag “odd” added.")
    assert describe("JobTagged", tag="odd", is_on=False) == ("neutral", "Tag “odd” removed.")


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
def test_exit_code_and_reason_are_not_repeated(reason: str, message: str, sentence: str) -> None:
    assert describe("PodPhaseChanged", **pod("failed", reason=reason, message=message, exit_code=3))[1] == sentence


@pytest.mark.parametrize(
    ("reason", "words"),
    [("AbortRequested", "the job was aborted"), ("MadeUp", "MadeUp"), ("Restarting", "the job restarts")],
)
def test_reason_of_a_stop_request(reason: str, words: str) -> None:
    facts = {"task": "worker", "index": 7, "attempt": 1, "reason": reason, "message": ""}
    assert describe("PodStopRequested", **facts) == ("stopped", f"worker-7 is stopping ({words}).")
