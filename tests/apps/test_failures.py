"""Explanations of failed pods: every reason and exit code has a cause and advice."""

import re

import pytest
from django.utils import translation

from hekla.apps.job_history import endings, failures
from hekla.apps.jobs.models import Pod
from hekla.project.settings import CHECKOUT

BACKENDS = CHECKOUT / "platform" / "hekla"


def a_pod(**changes: object) -> Pod:
    return Pod(**{"task": "worker", "index": 3, "attempt": 1, "phase": "failed", "node": "n1", **changes})


@pytest.mark.parametrize(
    ("reason", "code", "exit_words", "cause", "advice"),
    [
        ("Error", 1, "1", "exit code 1", "end of the log"),
        ("Error", 2, "2", "wrong arguments", "arguments"),
        ("Error", 42, "42", "exit code 42", "end of the log"),
        ("CommandNotExecutable", 126, "126, not executable", "cannot be executed", "executable"),
        ("Error", 126, "126, not executable", "cannot be executed", "spelling"),
        ("CommandNotFound", 127, "127, command not found", "does not exist", "spelling"),
        ("Error", 127, "127, command not found", "Command not found", "spelling"),
        ("Error", 130, "130, stopped by SIGINT", "interrupted", "processes sent the signal"),
        ("SIGABRT", 134, "134, stopped by SIGABRT", "aborted", "end of the log"),
        ("SIGBUS", 135, "135, stopped by SIGBUS", "does not exist (SIGBUS)", "shared memory"),
        ("OOMKilled", 137, "137, out of memory", "exceeded its memory request", "more memory"),
        ("SIGKILL", 137, "137, stopped by SIGKILL", "for lack of memory", "more memory"),
        ("SIGKILL", -9, "-9, stopped by SIGKILL", "killed (SIGKILL)", "more memory"),
        ("SIGSEGV", 139, "139, stopped by SIGSEGV", "Segmentation fault (SIGSEGV)", "faulthandler"),
        ("SIGTERM", 143, "143, stopped by SIGTERM", "received SIGTERM", "eviction"),
        ("SIGHUP", 129, "129, stopped by SIGHUP", "A signal stopped", "end of the log"),
        ("StartRefused", None, "–", "never start", "message"),
        ("EnvironmentFailed", None, "–", "could not be built", "package"),
        ("NodeLost", None, "–", "Node n1 is not responding", "again"),
        ("SomethingNew", None, "–", "could not be started", "message"),
    ],
)
def test_a_failure_is_explained(reason: str, code: int | None, exit_words: str, cause: str, advice: str) -> None:
    pod = a_pod(reason=reason, exit_code=code)
    explanation = failures.explain(pod)
    assert explanation is not None
    assert cause in explanation.cause
    assert advice in explanation.advice
    assert endings.exit_of(pod) == exit_words


@pytest.mark.parametrize(
    "pod",
    [
        a_pod(phase="running"), a_pod(phase="succeeded", exit_code=0), a_pod(reason="Stopped", exit_code=143),
    ],
)  # fmt: skip
def test_pods_without_failure_have_no_explanation(pod: Pod) -> None:
    assert failures.explain(pod) is None


def test_lost_pod_is_explained_with_any_reason() -> None:
    explanation = failures.explain(a_pod(phase="lost", reason="Unheard"))
    assert explanation is not None
    assert "Unknown exit status" in explanation.cause


def test_every_backend_reason_has_an_explanation() -> None:
    found: set[str] = set()
    for path in [*(BACKENDS / "backends").rglob("*.py"), *(BACKENDS / "controller").rglob("*.py")]:
        text = path.read_text(encoding="utf-8")
        found |= set(re.findall(r'PodStartError\("([A-Z]\w+)"', text))
        found |= set(re.findall(r'reason="([A-Z]\w+)"', text))
        found |= set(re.findall(r'"(?:failed|lost)", "([A-Z]\w+)"', text))
    assert len(found) > 12, "the search pattern is broken"
    assert found - {"Error", "Stopped"} <= set(failures._BY_REASON)


@pytest.mark.parametrize(
    ("log", "cause", "advice"),
    [
        ("x\nModuleNotFoundError: No module named 'torch'\n", "package torch is missing", "environment"),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate", "GPU ran out of memory", "smaller batches"),
        ("FileNotFoundError: [Errno 2] No such file or directory: '/data/x'", "/data/x does not exist", "Add the file"),
        ("PermissionError: [Errno 13] Permission denied: '/root'", "No permission to access /root", "own folder"),
        ("OSError: [Errno 28] No space left on device", "disk is full", "elsewhere"),
        ("OSError: [Errno 98] Address already in use", "uses the port", "another port"),
        ("ConnectionRefusedError: [Errno 111] Connection refused", "Connection refused", "dependsOn"),
        ("socket.gaierror: [Errno -2] Name or service not known", "could not be resolved", "svc"),
        ("MemoryError", "could not allocate memory", "memory"),
        ("NCCL WARN Call to connect returned", "GPUs could not communicate", "NCCL_DEBUG"),
        ("Traceback (most recent call last):\n  File\nValueError: no", "failed with ValueError", "lines above"),
        (
            "ConnectionRefusedError\nTraceback (most recent call last):\n  x\nModuleNotFoundError: No module named 'a'",
            "package a is missing",
            "environment",
        ),
    ],
)
def test_last_log_lines_are_recognised(log: str, cause: str, advice: str) -> None:
    explanation = failures.explain_log(log)
    assert explanation is not None
    assert cause in explanation.cause
    assert advice in explanation.advice


def test_unknown_log_has_no_explanation() -> None:
    assert failures.explain_log("epoch 3 loss 0.2\nall is well\n") is None


def test_percent_signs_in_a_log_are_text() -> None:
    explanation = failures.explain_log("FileNotFoundError: [Errno 2] No such file or directory: '100%s%(x)s'")
    assert explanation is not None
    assert "100%s%(x)s" in explanation.cause


def test_every_explanation_has_both_languages() -> None:
    for language in ("en", "zh-hans"):
        with translation.override(language):
            for cause, advice in [*failures._BY_REASON.values(), *failures._BY_EXIT_CODE.values()]:
                assert cause() % {"code": 1, "node": "n"}
                assert advice()
