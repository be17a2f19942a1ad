"""Archives and searches of the folder of a hostile pod: bounded, and no link leads elsewhere."""

import io
import os
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hekla.backends import file_tree
from hekla.backends.base import Backend, PodKey
from hekla.backends.file_tree import archive, find_files
from hekla.backends.files import NoSuchFileError
from hekla.backends.local.files import LocalFiles
from hekla.backends.local.pod_folder import PodFolder

KEY = PodKey("job", "main", 0, 0)
SECRET = "nobody reads this"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """The working folder of a pod with files, strange names and links."""
    work = tmp_path / "pod" / "work"
    (work / "out" / "deep").mkdir(parents=True)
    (work / ".ssh").mkdir()
    (tmp_path / "secret").write_text(SECRET)
    for name in ("out/a.txt", "out/deep/b.txt", "two\nlines", "..\\up", "C:x", "<b>", "\u202egpj.exe", ".ssh/id_rsa"):
        (work / name).write_text(name)
    (work / "two_lines").write_text("another")
    (work / "link").symlink_to(tmp_path / "secret")
    (work / "up").symlink_to(tmp_path)
    (work / "loop").symlink_to(work)
    os.mkfifo(work / "pipe")
    with open(os.fsencode(work) + b"/\xff.bin", "wb"):
        pass
    return work


@pytest.fixture
def backend(work: Path) -> Backend:
    return cast("Backend", SimpleNamespace(files=LocalFiles(lambda _key: PodFolder(str(work.parent)))))


def unzipped(backend: Backend, path: str = "") -> zipfile.ZipFile:
    return zipfile.ZipFile(io.BytesIO(b"".join(archive(backend, KEY, path))))


def test_archive_has_files_with_safe_names_and_no_links(backend: Backend) -> None:
    found = unzipped(backend)
    assert found.testzip() is None
    names = found.namelist()
    assert set(names) == {
        "<b>", "C_x", ".._up", "two_lines", "two_lines~2", "⟨U+202E⟩gpj.exe", "out/a.txt", "out/deep/b.txt",
        "NOT-COMPLETE.txt",
    }  # fmt: skip
    assert len(names) == len(set(names))
    note = found.read("NOT-COMPLETE.txt").decode()
    assert all(name in note for name in ("link", "up", "loop", "pipe", "\\udcff.bin"))
    assert not any(SECRET.encode() in found.read(name) for name in names)
    assert unzipped(backend, "out").namelist() == ["a.txt", "deep/b.txt"]


@pytest.mark.parametrize("path", ["..", "up", "link", "loop/out", ".ssh", "out/a.txt", "missing", "/", "a\0b"])
def test_no_other_folder_is_read(backend: Backend, path: str) -> None:
    with pytest.raises(NoSuchFileError):
        archive(backend, KEY, path)
    with pytest.raises(NoSuchFileError):
        find_files(backend, KEY, path, "a")


def test_folder_that_becomes_a_link_meanwhile_is_left_out(backend: Backend, work: Path) -> None:
    chunks = archive(backend, KEY, "")
    first = next(chunks)
    os.rename(work / "out", work.parent / "away")
    (work / "out").symlink_to(work.parents[1])
    found = zipfile.ZipFile(io.BytesIO(first + b"".join(chunks)))
    assert not any(SECRET.encode() in found.read(name) for name in found.namelist())


@pytest.mark.parametrize(
    ("limit", "value"), [("_MOST_FILES", 2), ("_MOST_BYTES", 3), ("_DEEPEST", 0), ("_MOST_VISITED", 3)]
)
def test_archive_is_bounded_and_says_so(
    backend: Backend, monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    monkeypatch.setattr(file_tree, limit, value)
    names = unzipped(backend).namelist()
    assert "out/deep/b.txt" not in names
    assert names[-1] == "NOT-COMPLETE.txt"


def test_search_finds_names_in_all_folders(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    def paths(text: str, path: str = "") -> Any:
        found = find_files(backend, KEY, path, text)
        return [entry.path_below(folder) for folder, entry in found.entries], found.is_complete

    assert paths(".TXT") == (["out/a.txt", "out/deep/b.txt"], True)
    assert paths(".txt", "out/deep") == (["out/deep/b.txt"], True)
    assert paths("id_rsa") == ([], True)
    assert paths("secret") == ([], True)
    monkeypatch.setattr(file_tree, "_MOST_FOUND", 1)
    assert paths(".txt") == (["out/a.txt"], False)
    monkeypatch.setattr(file_tree, "_SEARCH_SECONDS", -1.0)
    assert paths(".txt") == ([], False)


def test_many_files_with_the_same_safe_name_cost_little(backend: Backend, work: Path) -> None:
    for number in range(2**9):
        sign = f"{number:09b}".translate({ord("0"): "\\", ord("1"): ":"})
        (work / sign).touch()
    names = [name for name in unzipped(backend).namelist() if name.startswith("_________")]
    assert (len(names), len(set(names))) == (2**9, 2**9)


def test_search_in_empty_folders_ends_in_time(backend: Backend, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (work / "empty").mkdir()
    monkeypatch.setattr(file_tree, "_SEARCH_SECONDS", -1.0)
    assert not find_files(backend, KEY, "empty", "a").is_complete


def test_note_of_what_is_missing_is_bounded(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_tree, "_MOST_NOTED", 2)
    note = unzipped(backend).read("NOT-COMPLETE.txt").decode().splitlines()
    assert (len(note), note[-1]) == (4, "and 3 others")
