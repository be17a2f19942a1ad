"""The editor of text files: it never replaces what somebody else wrote, and answers with what was typed."""

import html
import os
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People
from tests.apps.pod_files import pod, work_of

from hekla.apps.accounts.models import User
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.jobs.models import FileUpload, Pod
from hekla.domain.text_files import MOST_BYTES

__all__ = ["pod"]
As = Callable[[User], Client]
TEXT = "print('<b>ü')\n"


def address(pod: Pod, path: str, **more: str) -> str:
    return f"{reverse('files:edit', args=[pod.pk])}?" + "&".join(f"{k}={v}" for k, v in {"path": path, **more}.items())


def save(client: Client, pod: Pod, path: str, text: str, *, base: str = "", **more: str) -> Any:
    return client.post(address(pod, path), {"text": text, "base": base, "do": "save", **more})


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def test_file_is_opened_saved_and_recorded(people: People, as_: As, pod: Pod, tmp_path: Path) -> None:
    alice, file = as_(people.alice), work_of(pod, tmp_path) / "train.py"
    file.write_text(TEXT)
    file.chmod(0o755)
    page = alice.get(address(pod, "train.py")).content.decode()
    assert html.escape(TEXT) in page
    assert digest(TEXT) in page
    assert 'data-language="python"' in page
    answer = save(alice, pod, "train.py", "print(1)\r\n", base=digest(TEXT))  # browsers send \r\n
    assert (answer.status_code, answer["Location"]) == (302, address(pod, "train.py", saved="yes"))
    assert file.read_bytes() == b"print(1)\n"
    assert os.access(file, os.X_OK)
    event = LoggedEvent.objects.get(kind="FileUploaded")
    assert (event.payload["path"], event.payload["sha256"], event.actor_id) == (
        "train.py", digest("print(1)\n"), people.alice.pk,
    )  # fmt: skip
    assert not FileUpload.objects.exists()
    assert not list(file.parent.glob(".hekla*"))


def test_line_ends_and_marks_stay(people: People, as_: As, pod: Pod, tmp_path: Path) -> None:
    alice, file = as_(people.alice), work_of(pod, tmp_path) / "a.bat"
    file.write_bytes(b"one\r\ntwo\r\n")
    assert 'name="has_returns"' in alice.get(address(pod, "a.bat")).content.decode()
    base = sha256(file.read_bytes()).hexdigest()
    save(alice, pod, "a.bat", "one\r\nthree\r\n", base=base, has_returns="on")
    assert file.read_bytes() == b"one\r\nthree\r\n"
    file.write_bytes(b"one\r\ntwo\n")
    assert "mixes several kinds" in alice.get(address(pod, "a.bat")).content.decode()


def test_change_of_the_program_is_never_overwritten(people: People, as_: As, pod: Pod, tmp_path: Path) -> None:
    alice, file = as_(people.alice), work_of(pod, tmp_path) / "train.py"
    file.write_text("theirs <i>\n")
    answer = save(alice, pod, "train.py", "mine <i>\n", base=digest("old"))
    page = answer.content.decode()
    assert (answer.status_code, file.read_text()) == (409, "theirs <i>\n")
    assert "The file has changed since you opened it" in page
    assert "removed: </span>theirs &lt;i&gt;" in page
    assert "added: </span>mine &lt;i&gt;" in page
    assert "mine &lt;i&gt;\n</textarea>" in page  # what was typed
    assert "train.mine.py" in alice.get(address(pod, "train.py")).content.decode()
    facts = {"text": "mine <i>\n", "base": digest("old"), "other": digest("theirs <i>\n"), "new_path": "src/mine.py"}
    assert alice.post(address(pod, "train.py"), {**facts, "do": "save_as"})["Location"] == address(
        pod, "src%2Fmine.py", saved="yes"
    )
    assert (file.parent / "src" / "mine.py").read_text() == "mine <i>\n"
    again = alice.post(address(pod, "train.py"), {**facts, "do": "save_as"})
    assert (again.status_code, "A file of that name exists" in again.content.decode()) == (409, True)
    file.write_text("theirs again\n")
    assert alice.post(address(pod, "train.py"), {**facts, "do": "replace"}).status_code == 409
    assert file.read_text() == "theirs again\n"
    facts["other"] = digest("theirs again\n")
    assert alice.post(address(pod, "train.py"), {**facts, "do": "replace"}).status_code == 302
    assert file.read_text() == "mine <i>\n"


def test_texts_of_too_many_lines_are_not_compared(people: People, as_: As, pod: Pod, tmp_path: Path) -> None:
    """They have few line feeds, but U+2028 ends lines as well. Comparing them would take minutes."""
    file = work_of(pod, tmp_path) / "a.txt"
    theirs, mine = ("\u2028".join(chr(200 + number(place)) for place in range(30_000)) for number in (
        lambda place: place % 100, lambda place: place // 300,
    ))  # fmt: skip
    file.write_text(theirs)
    before = time.process_time()
    page = save(as_(people.alice), pod, "a.txt", mine, base=digest("old")).content.decode()
    assert ("The file has changed since" in page, "From their version to yours" in page) == (True, False)
    assert time.process_time() - before < 10


def test_deleted_file_is_saved_again_only_on_request(people: People, as_: As, pod: Pod, tmp_path: Path) -> None:
    alice, file = as_(people.alice), work_of(pod, tmp_path) / "a.txt"
    answer = save(alice, pod, "a.txt", "mine", base=digest("old"))
    assert (answer.status_code, "was deleted meanwhile" in answer.content.decode()) == (409, True)
    assert not file.exists()
    assert save(alice, pod, "a.txt", "mine", base=digest("old"), do="replace").status_code == 302
    assert file.read_text() == "mine"


def test_new_file_does_not_replace_one(people: People, as_: As, pod: Pod, tmp_path: Path) -> None:
    alice, work = as_(people.alice), work_of(pod, tmp_path)
    started = alice.get(f"{reverse('files:edit', args=[pod.pk])}?path=out&name=new.sh")
    assert started["Location"] == address(pod, "out%2Fnew.sh", new="yes")
    assert "New file" in alice.get(started["Location"]).content.decode()
    assert alice.get(address(pod, "out/new.sh")).status_code == 404
    assert save(alice, pod, "out/new.sh", "echo").status_code == 302
    assert save(alice, pod, "out/new.sh", "other").status_code == 409
    assert (work / "out" / "new.sh").read_text() == "echo"
    assert "New text file" in alice.get(f"{reverse('jobs:detail', args=[pod.job.uid])}?tab=files").content.decode()


def test_script_gets_the_new_digest_or_a_refusal(people: People, as_: As, pod: Pod, tmp_path: Path) -> None:
    file, alice = work_of(pod, tmp_path) / "a.yaml", as_(people.alice)
    file.write_text("a: 1\n")
    headers = {"Accept": "application/json"}
    facts = {"text": "a: 2\n", "base": digest("a: 1\n"), "do": "save"}
    answer = alice.post(address(pod, "a.yaml"), facts, headers=headers)
    assert answer.json() == {"sha256": digest("a: 2\n")}
    assert alice.post(address(pod, "a.yaml"), facts, headers=headers).status_code == 409
    assert "a: 2" in file.read_text()


@pytest.mark.parametrize(
    ("content", "status", "words"),
    [(b"\x00\x01", 200, "cannot be edited"), (b"\xff\xfe", 200, "cannot be edited"),
     (b"x" * (MOST_BYTES + 1), 200, "cannot be edited"), (b"x" * MOST_BYTES, 200, "data-file-editor")],
)  # fmt: skip
def test_only_small_texts_are_opened(
    people: People, as_: As, pod: Pod, tmp_path: Path, content: bytes, status: int, words: str
) -> None:
    (work_of(pod, tmp_path) / "a").write_bytes(content)
    answer = as_(people.alice).get(address(pod, "a"))
    assert (answer.status_code, words in answer.content.decode()) == (status, True)


def test_hostile_paths_and_too_large_texts_are_refused(people: People, as_: As, pod: Pod, tmp_path: Path) -> None:
    alice = as_(people.alice)
    for path in ("passwd", "..%2Forder.json", ".ssh%2Fconfig", "out", ""):
        assert alice.get(address(pod, path)).status_code == 404, path
        answer = save(alice, pod, path, "stolen", base=digest("x"))
        assert (answer.status_code, "stolen" in answer.content.decode()) == (409, True), path
    large = save(alice, pod, "a", "x" * (MOST_BYTES + 1))
    assert (large.status_code, "The limit is 1 MiB" in large.content.decode()) == (409, True)
    assert sorted(one.name for one in work_of(pod, tmp_path).iterdir()) == sorted(
        ["out", "a\x1b[31mred", "\u202egpj.exe", "two\nlines", "passwd"]
    )


def test_who_may_edit(people: People, as_: As, pod: Pod, tmp_path: Path) -> None:
    (work_of(pod, tmp_path) / "a").write_text("a")
    for person, status in ((people.bob, 403), (people.charlie, 404)):
        client = as_(person)
        assert client.get(address(pod, "a")).status_code == status
        assert save(client, pod, "a", "b", base=digest("a")).status_code == status
    preview = f"{reverse('files:preview', args=[pod.pk])}?path=a"
    assert "/edit/" in as_(people.alice).get(preview).content.decode()
    assert "/edit/" not in as_(people.bob).get(preview).content.decode()
    assert (work_of(pod, tmp_path) / "a").read_text() == "a"
