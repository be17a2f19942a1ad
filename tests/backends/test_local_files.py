"""Reading what pods wrote: hostile names, links and folders lead nowhere else."""

import os
from pathlib import Path

import pytest

from hekla.backends.files import MOST_ENTRIES, FileKind, NoSuchFileError
from hekla.backends.local import files
from hekla.backends.local.pod_folder import PodFolder

SECRET = "nobody reads this"


@pytest.fixture
def folder(tmp_path: Path) -> PodFolder:
    """A pod with files, a volume and traps."""
    (tmp_path / "secret").write_text(SECRET)
    pod = tmp_path / "job" / "pod"
    work, volume, claim = pod / "work", pod / "volumes" / "scratch", tmp_path / "job" / ".claims" / "data" / "part"
    for path in (work / "out" / "deep", work / ".ssh", volume, claim):
        path.mkdir(parents=True)
    (work / "out" / "model.bin").write_bytes(b"abc")
    (work / ".ssh" / "id_rsa").write_text(SECRET)
    (volume / "kept").write_text("v")
    (claim / "rows").write_text("c")
    (work / "scratch").symlink_to(volume)
    (work / "data").symlink_to(claim)
    (work / "link").symlink_to(tmp_path / "secret")
    (work / "up").symlink_to(tmp_path)
    (work / "order").symlink_to(pod)
    (work / "beside").symlink_to(f"{pod}/volumes/../../../secret")
    (claim / "out").symlink_to(tmp_path)
    os.mkfifo(work / "pipe")
    return PodFolder(str(pod))


def read(folder: PodFolder, path: str) -> bytes:
    with files.open_file(folder, path) as file:
        return file.read()


def test_folder_lists_files_and_volumes(folder: PodFolder) -> None:
    found = {one.name: one.kind for one in files.list_folder(folder, "").entries}
    folders = {name for name, kind in found.items() if kind is FileKind.FOLDER}
    assert folders == {"out", "scratch", "data"}
    assert {name for name, kind in found.items() if kind is FileKind.LINK} == {"link", "up", "order", "beside"}
    assert found["pipe"] is FileKind.OTHER
    assert ".ssh" not in found
    assert [one.name for one in files.list_folder(folder, "out").entries] == ["deep", "model.bin"]
    assert read(folder, "out/model.bin") + read(folder, "scratch/kept") + read(folder, "data/rows") == b"abcvc"


@pytest.mark.parametrize(
    "path",
    [
        "..", "../order.json", "out/../../log", "/etc/passwd", "out//model.bin", ".", "out/.", "", "link", "up/secret",
        "order/log", "beside", "pipe", ".ssh/id_rsa", ".ssh", "data/out/secret", "missing", "out", "a" * 300, "a\0b",
        "/".join(["out"] * 50),
    ],
)  # fmt: skip
def test_nothing_else_is_read(folder: PodFolder, path: str) -> None:
    with pytest.raises(NoSuchFileError):
        files.open_file(folder, path)


@pytest.mark.parametrize("path", ["..", "up", "order", "link", ".ssh", "data/out", "out/model.bin", "pipe", "missing"])
def test_nothing_else_is_listed(folder: PodFolder, path: str) -> None:
    with pytest.raises(NoSuchFileError):
        files.list_folder(folder, path)


def test_link_in_place_of_the_working_folder_is_not_followed(folder: PodFolder, tmp_path: Path) -> None:
    os.rename(folder.work, f"{folder.work}-away")
    os.symlink(tmp_path, folder.work)
    with pytest.raises(NoSuchFileError):
        files.list_folder(folder, "")


def test_large_folder_is_cut(folder: PodFolder) -> None:
    for number in range(MOST_ENTRIES + 1):
        (Path(folder.work) / "out" / f"{number:04}").touch()
    found = files.list_folder(folder, "out")
    assert (len(found.entries), found.is_complete) == (MOST_ENTRIES, False)
