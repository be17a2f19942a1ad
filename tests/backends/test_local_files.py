"""Reading what pods wrote: hostile names, links and folders lead nowhere else."""

import os
import random
import threading
from pathlib import Path

import pytest
from tests.support.examples import examples

from hekla.backends.files import MOST_ENTRIES, FileKind, NoSuchFileError
from hekla.backends.local import files
from hekla.backends.local.pod_folder import PodFolder

SECRET = "nobody reads this"
PIECES = (
    *("..", ".", "", "~", "out", "deep", "up", "order", "link", "data", "scratch", "beside", ".ssh", "secret", "log"),
    *(
        "%2e%2e",
        "..%2f",
        "%252e%252e",
        "..\\",
        "\\..\\",
        "．．",
        "‥",
        "..;",
        ".. ",
        "\uff0e.",
        "\udc2e\udc2e",
        "\0",
        "..\0",
    ),
    *("/etc/passwd", "file:///etc/passwd", "//secret", "C:\\", "a" * 256, "\u202e", "\r\n", "-", "*", "$HOME", "`id`"),
)
"""Of which paths are made that lead nowhere else: up, by links, encoded, of other systems, too long."""
SEED = 14


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


def test_made_up_paths_lead_nowhere_else(folder: PodFolder) -> None:
    rng = random.Random(SEED)
    for _number in range(examples(5000)):
        path = rng.choice(("/", "/", "//", "\\")).join(rng.choices(PIECES, k=rng.randint(1, 6)))
        assert SECRET.encode() not in _read_or_nothing(folder, path), path
        try:
            names = {entry.name for entry in files.list_folder(folder, path).entries}
        except NoSuchFileError:
            continue
        assert not names & {"secret", "pod", "work", "volumes", "id_rsa"}, path


def test_folder_that_a_program_swaps_with_a_link_all_the_time_leads_nowhere_else(folder: PodFolder) -> None:
    work, stop = Path(folder.work), threading.Event()
    (work / "race").mkdir()
    (work / "race" / "secret").write_text("own")
    (work / "trap").symlink_to(Path(folder.work).parents[2])

    def swap() -> None:
        while not stop.is_set():
            for old, new in (("race", "aside"), ("trap", "race"), ("race", "trap"), ("aside", "race")):
                os.rename(work / old, work / new)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        found = {_read_or_nothing(folder, "race/secret") for _number in range(examples(20_000))}
    finally:
        stop.set()
        thread.join()
    assert found == {b"own", b""}, "both were met, and nothing else"


def _read_or_nothing(folder: PodFolder, path: str) -> bytes:
    try:
        return read(folder, path)
    except NoSuchFileError:
        return b""


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
