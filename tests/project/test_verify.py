"""`manage.py test`: a few tests that fail beside others run again, alone."""

import json
from pathlib import Path

import pytest

from hekla.launcher import verify


@pytest.mark.parametrize(
    ("failed", "alone", "expected"),
    [
        (["tests/a.py::one"], 0, True),
        (["tests/a.py::one"], 1, False),
        ([f"tests/a.py::{number}" for number in range(4)], 0, False),
        ([], 0, False),  # pytest itself failed
    ],
)
def test_few_failed_tests_count_by_their_second_run(
    failed: list[str], alone: int, expected: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = tmp_path / "lastfailed"
    names.write_text(json.dumps(dict.fromkeys(failed, True)))
    monkeypatch.setattr(verify, "_FAILED", names)
    monkeypatch.setattr(verify, "_pytest", lambda _arguments: alone)
    assert verify._pass_alone() is expected


def test_run_that_ended_early_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify, "_FAILED", tmp_path / "none")
    assert not verify._pass_alone()
