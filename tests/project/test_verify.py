"""`manage.py test`: a few tests that fail beside others run again, alone; a new clone gets the cache of mypy."""

import json
from pathlib import Path

import pytest

from hekla.launcher import mypy_cache, verify


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


def test_new_clone_gets_the_cache_of_the_last_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    stored, clones = tmp_path / "caches" / "hekla-mypy", [tmp_path / name for name in ("first", "second", "third")]
    for clone in clones:
        clone.mkdir()
        mypy_cache.begin(clone)
        assert not list(clone.iterdir())
    for clone, text in zip(clones, ("old", "new"), strict=False):
        (clone / ".mypy_cache").mkdir()
        (clone / ".mypy_cache" / "a.db").write_text(text)
        mypy_cache.store(clone)
    for clone in clones:
        mypy_cache.begin(clone)
    assert [(clone / ".mypy_cache" / "a.db").read_text() for clone in clones] == ["old", "new", "new"]
    assert [path.name for path in stored.glob("*/*")] == ["cache.tar"]


def test_cache_of_mypy_for_other_packages_is_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / ".mypy_cache").mkdir()
    mypy_cache.store(tmp_path)
    monkeypatch.setattr(mypy_cache, "_key", lambda: "other")
    clone = tmp_path / "clone"
    clone.mkdir()
    mypy_cache.begin(clone)
    assert not list(clone.iterdir())
    mypy_cache.store(tmp_path)
    assert [path.name for path in (tmp_path / "hekla-mypy").iterdir()] == ["other"]


def test_damaged_cache_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / ".mypy_cache").mkdir()
    mypy_cache.store(tmp_path)
    [archive] = (tmp_path / "hekla-mypy").glob("*/*")
    archive.write_bytes(b"damaged")
    (tmp_path / ".mypy_cache").rmdir()
    mypy_cache.begin(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["hekla-mypy"]
