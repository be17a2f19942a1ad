"""Writing files for people into the folder of a hostile pod: nothing is written elsewhere or replaced unseen.

On Kubernetes, scripts in the pod write; here they run on this machine.
"""

import contextlib
import hashlib
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.pod_commands import Command, Streams

from hekla.backends.base import BackendError, PodKey, UnknownPod
from hekla.backends.files import NoSuchFileError
from hekla.backends.kubernetes import pod_scripts
from hekla.backends.kubernetes.pod_scripts import NO_ANSWER, NOT_RUNNING, WRONG_ANSWER
from hekla.backends.kubernetes.uploads import NO_WRITING_TOOLS, NOT_WRITTEN, KubernetesUploads
from hekla.backends.local import files, uploads
from hekla.backends.local.pod_folder import PodFolder
from hekla.backends.local.uploads import LocalUploads
from hekla.backends.streams import Output
from hekla.backends.uploads import (
    ANYTHING,
    DRAFT_PREFIX,
    MOST_BYTES,
    DraftFile,
    DraftLostError,
    FileConflictError,
    NoRoomError,
    WritableFiles,
)

KEY = PodKey("job", "main", 0, 0)
NAME = f"{DRAFT_PREFIX}1"
OUTSIDE = "nobody writes this"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """The working folder of a pod with a volume and traps."""
    pod = tmp_path / "job" / "pod"
    work, volume = pod / "work", pod / "volumes" / "scratch"
    for path in (work / "out", work / ".ssh", volume, tmp_path / "outside"):
        path.mkdir(parents=True)
    (work / "scratch").symlink_to(volume)
    (work / "up").symlink_to(tmp_path / "outside")
    (work / "old").write_text("old")
    (work / "link").symlink_to(tmp_path / "outside" / "secret")
    (tmp_path / "outside" / "secret").write_text(OUTSIDE)
    return work


@pytest.fixture(params=["local", "kubernetes"])
def facet(request: pytest.FixtureRequest, work: Path) -> WritableFiles:
    if request.param == "kubernetes":
        return KubernetesUploads(Streams(), str(work))  # type: ignore[arg-type]
    return LocalUploads(lambda _key: PodFolder(str(work.parent)))


only_local = pytest.mark.parametrize("facet", ["local"], indirect=True)


def begin(facet: WritableFiles, path: str, size: int = 3, replaces: str = "") -> DraftFile:
    mark = facet.create_draft(DraftFile(KEY, path, NAME), size, replaces=replaces)
    return DraftFile(KEY, path, NAME, mark)


@pytest.mark.parametrize("path", ["a", "out/b", "new/deep/c", "ü <b>.html", "-n $(touch x)\n'\""])
def test_file_is_written_in_pieces(facet: WritableFiles, work: Path, path: str) -> None:
    draft = begin(facet, path, 6)
    facet.append(draft, 0, b"abc")
    facet.append(draft, 3, b"def")
    folder = path.rpartition("/")[0]
    assert NAME not in {one.name for one in files.list_folder(PodFolder(str(work.parent)), folder).entries}
    assert facet.finish(draft, 6, replaces="") == hashlib.sha256(b"abcdef").hexdigest()
    assert (work / path).read_bytes() == b"abcdef"
    assert not list(work.rglob(f"{DRAFT_PREFIX}*"))


@only_local
def test_file_is_written_into_a_volume(facet: WritableFiles, work: Path) -> None:
    draft = begin(facet, "scratch/d")
    facet.append(draft, 0, b"abc")
    facet.finish(draft, 3, replaces="")
    assert (work.parent / "volumes" / "scratch" / "d").read_bytes() == b"abc"


@pytest.mark.parametrize(
    "path",
    ["", "..", "../x", "out/../x", "/etc/x", "a//b", "up/x", "link/x", ".ssh/x", ".ssh", "old/x", "a\0b",
     f"{DRAFT_PREFIX}2",
     "/".join(["a"] * 50), "a" * 300, "out/" + "a" * 300 + "/b", f"out/{NAME}"],
)  # fmt: skip
def test_nothing_is_written_elsewhere(facet: WritableFiles, work: Path, path: str) -> None:
    with pytest.raises((NoSuchFileError, OSError)):
        begin(facet, path)
    assert sorted(one.name for one in work.parents[2].joinpath("outside").iterdir()) == ["secret"]
    assert not list(work.rglob(f"{DRAFT_PREFIX}*"))


@pytest.mark.parametrize(
    ("path", "replaces", "is_allowed"),
    [
        ("old", "", False), ("out", "", False), ("link", "", False), ("new", "0" * 64, False), ("old", "0" * 64, False),
        ("out", ANYTHING, False), ("link", hashlib.sha256(OUTSIDE.encode()).hexdigest(), False),
        ("old", hashlib.sha256(b"old").hexdigest(), True), ("old", ANYTHING, True), ("new", ANYTHING, True),
        ("link", ANYTHING, True),
    ],
)  # fmt: skip
def test_target_is_replaced_only_as_expected(
    facet: WritableFiles, work: Path, path: str, replaces: str, is_allowed: bool
) -> None:
    if not is_allowed:
        with pytest.raises(FileConflictError):
            begin(facet, path, replaces=replaces)
        return
    draft = begin(facet, path, replaces=replaces)
    facet.append(draft, 0, b"new")
    facet.finish(draft, 3, replaces=replaces)
    assert ((work / path).read_bytes(), (work / path).is_symlink()) == (b"new", False)
    assert (work.parents[2] / "outside" / "secret").read_text() == OUTSIDE


def test_target_that_appears_or_changes_meanwhile_stays(facet: WritableFiles, work: Path) -> None:
    draft = begin(facet, "a")
    facet.append(draft, 0, b"new")
    (work / "a").write_text("of the pod")
    with pytest.raises(FileConflictError):
        facet.finish(draft, 3, replaces="")
    facet.discard(draft)
    expected = hashlib.sha256(b"old").hexdigest()
    draft = begin(facet, "old", replaces=expected)
    facet.append(draft, 0, b"new")
    (work / "old").write_text("changed")
    with pytest.raises(FileConflictError):
        facet.finish(draft, 3, replaces=expected)
    assert ((work / "a").read_text(), (work / "old").read_text()) == ("of the pod", "changed")


def _link(work: Path) -> None:
    (work / "out" / NAME).unlink()
    (work / "out" / NAME).symlink_to(work.parents[2] / "outside" / "secret")


def _hard_link(work: Path) -> None:
    os.link(work / "out" / NAME, work / "second")


def _other_file(work: Path) -> None:
    (work / "other").write_text("xyz")
    os.replace(work / "other", work / "out" / NAME)


def _pipe(work: Path) -> None:
    (work / "out" / NAME).unlink()
    os.mkfifo(work / "out" / NAME)


def _folder_link(work: Path) -> None:
    shutil.rmtree(work / "out")
    (work / "out").symlink_to(work.parents[2] / "outside")


@pytest.mark.parametrize("swap", [_link, _hard_link, _other_file, _pipe, _folder_link])
def test_replaced_draft_is_refused(facet: WritableFiles, work: Path, swap: Callable[[Path], None]) -> None:
    draft = begin(facet, "out/a")
    swap(work)
    for step in (lambda: facet.append(draft, 0, b"abc"), lambda: facet.finish(draft, 3, replaces="")):
        with pytest.raises((DraftLostError, NoSuchFileError)):
            step()
    facet.discard(draft)
    assert (work.parents[2] / "outside" / "secret").read_text() == OUTSIDE
    assert sorted(one.name for one in (work.parents[2] / "outside").iterdir()) == ["secret"]


def test_draft_of_another_size_is_refused(facet: WritableFiles, work: Path) -> None:
    draft = begin(facet, "a", 3)
    facet.append(draft, 0, b"abc")
    with (work / NAME).open("ab") as file:
        file.write(b"more")
    with pytest.raises(DraftLostError):
        facet.finish(draft, 3, replaces="")


@pytest.mark.parametrize("replaces", ["", hashlib.sha256(b"old").hexdigest()])
def test_second_finish_returns_the_same(facet: WritableFiles, work: Path, replaces: str) -> None:
    path = "old" if replaces else "out/a"
    draft = begin(facet, path, replaces=replaces)
    facet.append(draft, 0, b"abc")
    digests = {facet.finish(draft, 3, replaces=replaces) for _again in range(2)}
    assert digests == {hashlib.sha256(b"abc").hexdigest()}
    (work / path).write_text("abcd")
    with pytest.raises(DraftLostError):
        facet.finish(draft, 3, replaces=replaces)


def test_finish_that_died_between_its_steps_is_completed(facet: WritableFiles, work: Path) -> None:
    draft = begin(facet, "out/a")
    facet.append(draft, 0, b"abc")
    os.link(work / "out" / NAME, work / "out" / "a")
    assert facet.finish(draft, 3, replaces="") == hashlib.sha256(b"abc").hexdigest()
    assert [one.name for one in (work / "out").iterdir()] == ["a"]


def test_replaced_file_hands_on_its_permissions(facet: WritableFiles, work: Path) -> None:
    (work / "old").chmod(0o4750)
    draft = begin(facet, "old", replaces=ANYTHING)
    facet.append(draft, 0, b"new")
    facet.finish(draft, 3, replaces=ANYTHING)
    assert (work / "old").stat().st_mode & 0o7777 == 0o750


@only_local
def test_full_disk_is_refused(facet: WritableFiles, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "_LEAST_FREE_BYTES", 2**62)
    with pytest.raises(NoRoomError):
        begin(facet, "a")
    assert not list(work.rglob(f"{DRAFT_PREFIX}*"))


@only_local
def test_disk_that_others_filled_meanwhile_is_refused(
    facet: WritableFiles, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draft = begin(facet, "a")
    monkeypatch.setattr(uploads, "_LEAST_FREE_BYTES", 2**62)
    with pytest.raises(NoRoomError):
        facet.append(draft, 0, b"abc")
    assert (work / NAME).stat().st_size == 0


def test_file_larger_than_any_disk_is_not_read(facet: WritableFiles, work: Path) -> None:
    with (work / "sparse").open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    with pytest.raises(FileConflictError):
        begin(facet, "sparse", replaces="0" * 64)


def scripts(work: Path, answer: Command | Exception | None = None) -> KubernetesUploads:
    return KubernetesUploads(Streams(answer), str(work))  # type: ignore[arg-type]


@contextlib.contextmanager
def flipping(path: Path, target: Path) -> Iterator[None]:
    """A pod that puts a link in the place of a file or folder, and the thing itself back, again and again."""
    aside, is_over = path.with_name("aside"), threading.Event()

    def flip() -> None:
        while not is_over.is_set():
            path.rename(aside)
            path.symlink_to(target)
            path.unlink()
            aside.rename(path)

    thread = threading.Thread(target=flip)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def test_link_that_appears_in_between_leads_nowhere(work: Path) -> None:
    outside, facet = work.parents[2] / "outside", scripts(work)
    (outside / NAME).write_text(OUTSIDE)
    draft = begin(facet, "out/a")
    for flipped, target in ((work / "out", outside), (work / "out" / NAME, outside / "secret")):
        with flipping(flipped, target):
            for _number in range(15):
                with contextlib.suppress(DraftLostError, NoSuchFileError):
                    facet.append(draft, 0, b"abc")
    assert {one.name: one.read_text() for one in outside.iterdir()} == dict.fromkeys(("secret", NAME), OUTSIDE)


@pytest.mark.parametrize("enter", [pod_scripts.ENTER, pod_scripts.ENTER_AND_MAKE])
def test_link_that_appears_after_the_check_is_noticed(work: Path, enter: str) -> None:
    swap = 'cd() { [ "$3" != ./out ] || { mv out aside && ln -s ../../../outside out; }; command cd "$@"; }\n'
    one = pod_scripts.PodScripts(Streams(), str(work))  # type: ignore[arg-type]
    assert one.run(KEY, f"{swap.replace('./out', './in')}{enter}pwd", one.place(["out"]), "out").endswith(b"/out\n")
    with pytest.raises(NoSuchFileError):
        one.run(KEY, f"{swap}{enter}pwd", one.place(["out"]), "out")
    assert (work / "out").is_symlink()


def test_late_bytes_of_a_lost_request_are_cut_off(work: Path) -> None:
    facet = scripts(work)
    draft = begin(facet, "a", 6)
    facet.append(draft, 0, b"abc")
    with (work / NAME).open("ab") as file:
        file.write(b"late")
    facet.append(draft, 3, b"def")
    assert facet.finish(draft, 6, replaces="") == hashlib.sha256(b"abcdef").hexdigest()
    with pytest.raises(DraftLostError):
        facet.append(draft, 99, b"beyond its end")


def test_large_piece_arrives_whole(work: Path) -> None:
    facet, data = scripts(work), os.urandom(2**20)
    draft = begin(facet, "a", len(data))
    facet.append(draft, 0, data)
    assert facet.finish(draft, len(data), replaces="") == hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Command([], 48), NOT_WRITTEN), (Command([], 45), NO_WRITING_TOOLS), (Command([], 9), WRONG_ANSWER),
        (Command([Output(b"1:2; rm")], 0), WRONG_ANSWER), (Command([Output(bytes(10**6))] * 6, 0), WRONG_ANSWER),
        (UnknownPod("gone"), NOT_RUNNING), (BackendError("refused"), "refused"), (Command([], 0, 5.0), NO_ANSWER),
    ],
)  # fmt: skip
def test_hostile_answer_is_an_error(work: Path, monkeypatch: pytest.MonkeyPatch, answer: object, why: str) -> None:
    monkeypatch.setattr(pod_scripts, "_ANSWER_SECONDS", 0.2)
    facet = scripts(work, answer)  # type: ignore[arg-type]
    with pytest.raises(BackendError, match=why):
        begin(facet, "a")


def test_pod_that_writes_errors_for_ever_is_not_read_for_ever(work: Path) -> None:
    facet = scripts(work, Command([Output(bytes(10**6), True)] * 6, 0))
    with pytest.raises(BackendError, match=WRONG_ANSWER):
        facet.discard(DraftFile(KEY, "a", NAME))


def test_disk_of_a_pod_is_not_filled(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stat = work.parent / "bin" / "stat"
    stat.parent.mkdir()
    stat.write_text(f'#!/bin/sh\n[ "$1" = -f ] && echo "$FREE 100 1048576" || exec {shutil.which("stat")} "$@"\n')
    stat.chmod(0o755)
    monkeypatch.setenv("PATH", f"{stat.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("FREE", "6")
    facet = scripts(work)
    draft = begin(facet, "a", 2**20)
    with pytest.raises(NoRoomError):
        begin(facet, "b", 2 * 2**20)
    monkeypatch.setenv("FREE", "5")
    with pytest.raises(NoRoomError):
        facet.append(draft, 0, b"abc")


def test_image_without_tools_says_so(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    facet, shell = scripts(work), work.parent / "bin"
    shell.mkdir()
    (shell / "sh").symlink_to("/bin/sh")
    monkeypatch.setenv("PATH", str(shell))
    with pytest.raises(BackendError, match=NO_WRITING_TOOLS[:30]):
        begin(facet, "a")
