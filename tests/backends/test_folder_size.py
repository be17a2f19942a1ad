"""How much room a hostile folder takes: bounded, and nothing outside of it counts."""

import os
from pathlib import Path

import pytest

from hekla.backends.local import folder_size


def test_files_links_and_holes(tmp_path: Path) -> None:
    job, outside = tmp_path / "job", tmp_path / "outside"
    (job / "pod" / "work").mkdir(parents=True)
    outside.mkdir()
    (outside / "large").write_bytes(bytes(1_000_000))
    (job / "link").symlink_to(outside)
    (job / "pod" / "work" / "a").write_bytes(b"x" * 100_000)
    os.link(job / "pod" / "work" / "a", job / "pod" / "work" / "same")
    with (job / "hole").open("wb") as file:
        file.truncate(2**40)
    found = folder_size.measure(str(job))
    assert (found.files, found.is_complete) == (4, True)
    assert 100_000 <= found.size < 200_000


@pytest.mark.parametrize(("limit", "value"), [("_MOST_ENTRIES", 3), ("_MOST_SECONDS", -1.0), ("_DEEPEST", 2)])
def test_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: float) -> None:
    (tmp_path / "a" / "b" / "c" / "d").mkdir(parents=True)
    assert folder_size.measure(str(tmp_path)).is_complete
    monkeypatch.setattr(folder_size, limit, value)
    assert not folder_size.measure(str(tmp_path)).is_complete


def test_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="missing"):
        folder_size.measure(str(tmp_path / "missing"))
