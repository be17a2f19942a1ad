"""Files of running pods, read by commands in them: names are never code, links lead nowhere, answers are checked."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.backends.conftest import ClusterFixture
from tests.support.pod_commands import Command, Streams

from hekla.backends import files
from hekla.backends.base import BackendError, PodKey, UnknownPod
from hekla.backends.files import FileKind, NoSuchFileError
from hekla.backends.kubernetes import files as pod_files
from hekla.backends.kubernetes import pod_scripts
from hekla.backends.kubernetes.files import KubernetesFiles
from hekla.backends.kubernetes.pod_scripts import NO_ANSWER, NO_TOOLS, NOT_RUNNING, WRONG_ANSWER
from hekla.backends.streams import Output
from hekla.domain.phases import PodPhase

KEY = PodKey("job", "main", 0, 0)
HOSTILE = [
    "$(touch stolen)",
    "`touch stolen`",
    "a b",
    "-n",
    "--",
    "new\nline",
    "\u202egpj",
    "*",
    "'\"",
    "ü",
    ".dot",
    "..dots",
]


def facet(root: Path, answer: Command | Exception | None = None) -> KubernetesFiles:
    return KubernetesFiles(Streams(answer), str(root))  # type: ignore[arg-type]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A working folder with files, hostile names and traps."""
    work = tmp_path / "work"
    (work / "out" / "deep").mkdir(parents=True)
    (work / ".ssh").mkdir()
    (work / ".ssh" / "key").write_text("secret")
    (tmp_path / "secret").write_text("secret")
    (work / "out" / "model.bin").write_bytes(bytes(range(256)) * 1000)
    (work / "link").symlink_to(tmp_path / "secret")
    (work / "up").symlink_to(tmp_path)
    (work / "empty").touch()
    for name in HOSTILE:
        (work / name).write_text(name)
    return work


def test_folder_is_listed(work: Path) -> None:
    found = facet(work).list_folder(KEY, "")
    kinds = {entry.name: entry.kind for entry in found.entries}
    assert kinds == {
        "out": FileKind.FOLDER, "link": FileKind.LINK, "up": FileKind.LINK, "empty": FileKind.FILE,
        **dict.fromkeys(HOSTILE, FileKind.FILE),
    }  # fmt: skip
    assert (found.entries[0].name, found.is_complete) == ("out", True)
    model = facet(work).list_folder(KEY, "out").entries[1]
    assert (model.name, model.size, model.changed_at.timestamp()) == (
        "model.bin", 256_000, int((work / "out" / "model.bin").stat().st_mtime),
    )  # fmt: skip
    assert facet(work).list_folder(KEY, "out/deep").entries == []
    assert not (work / "stolen").exists()


def test_file_is_read(work: Path) -> None:
    with facet(work).open_file(KEY, "out/model.bin") as file:
        assert file.seek(0, 2) == 256_000
        assert file.seek(0) == 0
        assert file.read(10) == bytes(range(10))
        assert file.read() == (bytes(range(256)) * 1000)[10:]
        with pytest.raises(io.UnsupportedOperation):
            file.seek(5)
    for name in HOSTILE:
        with facet(work).open_file(KEY, name) as file:
            assert file.read().decode() == name
    with facet(work).open_file(KEY, "empty") as file:
        assert file.read() == b""
    assert not list(work.rglob("stolen"))


@pytest.mark.parametrize(
    "path", ["..", "up", "up/secret", "link", "link/x", "out/../x", ".ssh", ".ssh/key", "missing", "empty/x"]
)
def test_nothing_else_is_read(work: Path, path: str) -> None:
    for step in (facet(work).list_folder, facet(work).open_file):
        with pytest.raises(NoSuchFileError):
            step(KEY, path)


def test_large_folder_is_cut(work: Path) -> None:
    for number in range(20):
        (work / "out" / f"f{number:02}").touch()
    found = facet(work).list_folder(KEY, "out", 5)
    assert (len(found.entries), found.is_complete) == (5, False)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Command([Output(b"81a4 1 1\na/b\0")], 0), WRONG_ANSWER),
        (Command([Output(b"81a4 1 1\n..\0")], 0), WRONG_ANSWER),
        (Command([Output(b"junk")], 0), WRONG_ANSWER), (Command([Output(b"81a4 1 1\na")], 0), WRONG_ANSWER),
        (Command([Output(bytes(10**6))] * 6, 0), WRONG_ANSWER), (Command([], 9), WRONG_ANSWER),
        (Command([], 127), NO_TOOLS), (Command([], 45), NO_TOOLS), (UnknownPod("gone"), NOT_RUNNING),
        (BackendError("refused"), "refused"), (Command([], 0, pause=5.0), NO_ANSWER),
    ],
)  # fmt: skip
def test_hostile_answer_is_an_error(work: Path, monkeypatch: pytest.MonkeyPatch, answer: Any, why: str) -> None:
    monkeypatch.setattr(pod_scripts, "_ANSWER_SECONDS", 0.2)
    with pytest.raises(BackendError, match=why):
        facet(work, answer).list_folder(KEY, "")


def test_hostile_names_and_numbers_are_bounded(work: Path) -> None:
    answer = Command([Output(b"41ed 9999999999999999999 -99999999999\n\xff\xfe\x1b\0")], 0)
    (entry,) = facet(work, answer).list_folder(KEY, "").entries
    assert (entry.is_utf8, entry.size, entry.changed_at.year) == (False, 2**63 - 1, 1970)


@pytest.mark.parametrize("size", [b"", b"x", b"-1", b"9" * 30])
def test_hostile_size_is_refused(work: Path, size: bytes) -> None:
    with pytest.raises(BackendError):
        facet(work, Command([Output(size)], 0)).open_file(KEY, "a")


def test_pod_that_sends_more_than_the_size_is_cut(work: Path) -> None:
    stream = pod_files._FileStream(Streams(Command([Output(b"abcdef")] * 9, 0)), KEY, [], 8)  # type: ignore[arg-type]
    assert io.BufferedReader(stream).read() == b"abcdefab"


@pytest.mark.parametrize("answer", [BackendError("cut"), UnknownPod("gone"), Command([Output(b"abc")], 44)])
def test_broken_connection_is_no_end_of_the_file(answer: Any) -> None:
    stream = pod_files._FileStream(Streams(answer), KEY, [], 8)  # type: ignore[arg-type]
    with pytest.raises(BackendError, match=NO_ANSWER):
        io.BufferedReader(stream).read()


def test_file_that_became_shorter_ends_early() -> None:
    stream = pod_files._FileStream(Streams(Command([Output(b"abc")], 0)), KEY, [], 8)  # type: ignore[arg-type]
    assert io.BufferedReader(stream).read() == b"abc"


def test_pod_that_sends_a_byte_now_and_then_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_files, "_PIECE_SECONDS", 0.3)
    answer = Command([Output(b"a")] * 100, 0, pause=0.05)
    with pytest.raises(BackendError, match=NO_ANSWER):
        io.BufferedReader(pod_files._FileStream(Streams(answer), KEY, [], 100)).read()  # type: ignore[arg-type]


def test_more_entries_than_requested_are_not_parsed(work: Path) -> None:
    answer = Command([Output(b"81a4 1 1\na\0" * 9 + b"junk")], 0)
    found = facet(work, answer).list_folder(KEY, "", 5)
    assert (len(found.entries), found.is_complete) == (5, False)


@pytest.mark.kubernetes
def test_files_of_a_pod_are_read_by_exec(
    connections: None, make_cluster: Callable[[str], ClusterFixture], work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud = make_cluster("kubernetes")
    key = cloud.started(cloud.long())
    cloud.until(key, PodPhase.RUNNING)
    backend = cloud.backend
    monkeypatch.setattr(type(backend), "files", KubernetesFiles(backend.exec, str(work)))
    assert {entry.name for entry in files.list_folder(backend, key, "out").entries} == {"deep", "model.bin"}
    assert files.read_head(backend, key, "out/model.bin", 4) == (b"\0\1\2\3", 256_000)
    chunks, size = files.read_file(backend, key, "out/model.bin")
    assert (b"".join(chunks), size) == (bytes(range(256)) * 1000, 256_000)
    with pytest.raises(files.UnreadableFilesError, match="only while the pod runs"):
        files.list_folder(backend, PodKey("other", "main", 0, 0), "")
