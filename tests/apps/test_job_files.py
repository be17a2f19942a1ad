"""The tab Files: what a local pod wrote is listed and downloaded by those who may read its log."""

import html
import io
import json
import zipfile
from collections.abc import Callable, Iterator
from contextlib import aclosing
from pathlib import Path

import pytest
from asgiref.sync import async_to_sync
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People
from tests.apps.pod_files import pod, work_of

from hekla.apps.accounts.models import User
from hekla.apps.jobs.models import Pod
from hekla.apps.streaming import FileResponse
from hekla.lib import clock
from hekla.pages.jobs import file_rows, live

__all__ = ["pod"]
As = Callable[[User], Client]


def test_files_are_listed_and_downloaded(people: People, as_: As, pod: Pod) -> None:
    bob, job = as_(people.bob), reverse("jobs:detail", args=[pod.job.uid])
    page = bob.get(job, {"tab": "files"}).content.decode()
    assert "a\\x1b[31mred" in page
    assert "⟨U+202E⟩gpj.exe" in page
    assert "link, not followed" in page
    page = bob.get(job, {"tab": "files", "pod": pod.pk, "path": "out"}).content.decode()
    assert "&lt;b&gt;&amp; ü.html" in page
    address = reverse("live:download_file", args=[pod.pk])
    answer = bob.get(address, {"path": "out/<b>& ü.html"})
    assert b"".join(answer.streaming_content) == b"<script>alert(1)</script>"
    assert answer["Content-Disposition"].startswith("attachment")
    assert (answer["Content-Type"], answer["X-Content-Type-Options"]) == ("application/octet-stream", "nosniff")
    assert bob.get(address, {"path": "two\nlines"})["Content-Disposition"] == 'attachment; filename="two_lines"'
    for path in ("passwd", "../order.json", "out", "", "missing"):
        assert bob.get(address, {"path": path}).status_code == 404
    assert as_(people.charlie).get(address, {"path": "out/<b>& ü.html"}).status_code == 404
    assert "no such folder" in bob.get(job, {"tab": "files", "path": "../.."}).content.decode()


def test_rest_lists_and_reads_files(people: People, as_: As, pod: Pod) -> None:
    bob, charlie = as_(people.bob), as_(people.charlie)
    where = f"/api/v1/jobs/{pod.job.uid}/pods/main/0"
    found = {entry["name"]: entry for entry in bob.get(f"{where}/files").json()["entries"]}
    assert {name: entry["path"] for name, entry in found.items()} == {
        "out": "out", "a\\x1b[31mred": "a\x1b[31mred", "⟨U+202E⟩gpj.exe": "\u202egpj.exe", "two\\nlines": "two\nlines",
        "passwd": None,
    }  # fmt: skip
    assert (found["passwd"]["kind"], found["out"]["kind"]) == ("link", "folder")
    (inner,) = bob.get(f"{where}/files", {"path": "out"}).json()["entries"]
    answer = bob.get(f"{where}/file", {"path": inner["path"]}, headers={"Accept": "application/octet-stream"})
    assert b"".join(answer.streaming_content) == b"<script>alert(1)</script>"
    assert answer["Content-Disposition"].startswith("attachment")
    assert (answer["Content-Type"], answer["Content-Length"]) == ("application/octet-stream", "25")
    for path in ("passwd", "../order.json", "out", "out/../a", "/etc/passwd", "missing"):
        assert bob.get(f"{where}/file", {"path": path}).status_code == 404
    for path in ("..", "passwd", "/", "out/<b>& ü.html", "missing"):
        assert bob.get(f"{where}/files", {"path": path}).status_code == 404
    assert bob.get(f"{where}/file").status_code == 400
    assert charlie.get(f"{where}/files").status_code == charlie.get(f"{where}/file", {"path": "out"}).status_code == 404


def test_events_of_the_job_start_no_search(people: People, pod: Pod, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_rows.files, "find_files", lambda *_arguments: pytest.fail("It was searched."))
    words = {"uid": str(pod.job.uid), "tab": "files", "find": "a"}
    assert str(pod.job.uid) in live._job(people.bob, words)


PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)
HTML = "<script>alert(1)</script>"


def test_files_are_previewed_and_nothing_in_them_runs(people: People, as_: As, pod: Pod, tmp_path: Path) -> None:
    bob, work = as_(people.bob), work_of(pod, tmp_path)
    (work / "a.svg").write_text(f"<svg onload='x()'>{HTML}</svg>")
    (work / "a.csv").write_text(f"head\n{HTML}\n")
    (work / "a.ipynb").write_text(json.dumps({"cells": [{"cell_type": "code", "source": HTML, "outputs": [
        {"data": {"text/html": "<b>left-out</b>", "text/plain": HTML}}]}]}))  # fmt: skip
    (work / "photo<b>.txt").write_bytes(PNG)
    (work / "model.pkl").write_bytes(b"\x80\x04\x95\0")
    address, image = (reverse(f"files:{name}", args=[pod.pk]) for name in ("preview", "image"))
    for path in ("out/<b>& ü.html", "a.svg", "a.csv", "a.ipynb"):
        page = bob.get(address, {"path": path}).content.decode()
        assert html.escape(HTML) in page, path
        assert HTML not in page
        assert "left-out" not in page
    assert "80 04 95 00" in bob.get(address, {"path": "model.pkl"}).content.decode()
    page = bob.get(address, {"path": "photo<b>.txt"}).content.decode()
    assert f"{image}?path=photo%3Cb%3E.txt" in page
    answer = bob.get(image, {"path": "photo<b>.txt"})
    assert (answer["Content-Type"], answer["X-Content-Type-Options"], answer.content) == ("image/png", "nosniff", PNG)
    assert answer["Content-Security-Policy"] == "sandbox; default-src 'none'"
    for path in ("a.svg", "out/<b>& ü.html", "passwd", "../order.json", "..%2forder.json", "missing", ""):
        assert bob.get(image, {"path": path}).status_code == 404, path
    for path in ("passwd", "../order.json", "%2e%2e/order.json", "out", "", "missing"):
        assert bob.get(address, {"path": path}).status_code == 404, path
    for route in (address, image):
        assert as_(people.charlie).get(route, {"path": "photo<b>.txt"}).status_code == 404


def test_rest_previews_files(people: People, as_: As, pod: Pod, tmp_path: Path) -> None:
    (work_of(pod, tmp_path) / "a.csv").write_text("a,b\n=1+1,2\n")
    where = f"/api/v1/jobs/{pod.job.uid}/pods/main/0/file/preview"
    found = as_(people.bob).get(where, {"path": "a.csv"}).json()
    assert (found["kind"], found["rows"], found["complete"]) == ("table", [["a", "b"], ["=1+1", "2"]], True)
    cells = [{"cell_type": "code", "source": HTML, "outputs": [{"text": "one"}]}]
    (work_of(pod, tmp_path) / "a.ipynb").write_text(json.dumps({"cells": cells}))
    (cell,) = as_(people.bob).get(where, {"path": "a.ipynb"}).json()["cells"]
    assert (cell["source"], cell["outputs"][0]["text"]) == (HTML, "one")
    assert as_(people.bob).get(where, {"path": "passwd"}).status_code == 404
    assert as_(people.charlie).get(where, {"path": "a.csv"}).status_code == 404


def test_folders_are_searched_and_archived(people: People, as_: As, pod: Pod) -> None:
    bob, charlie = as_(people.bob), as_(people.charlie)
    page = bob.get(reverse("jobs:detail", args=[pod.job.uid]), {"tab": "files", "find": "<B>"}).content.decode()
    assert "out/&lt;b&gt;&amp; ü.html" in page
    assert "passwd" not in page
    where = f"/api/v1/jobs/{pod.job.uid}/pods/main/0"
    found = bob.get(f"{where}/files/search", {"q": "html"}).json()
    assert ([entry["path"] for entry in found["entries"]], found["complete"]) == (["out/<b>& ü.html"], True)
    for address in (f"{where}/archive", reverse("files:archive", args=[pod.pk])):
        answer = bob.get(address, {"path": "out"})
        content = zipfile.ZipFile(io.BytesIO(b"".join(answer.streaming_content)))
        assert content.read("<b>& ü.html").decode() == HTML
        assert answer["Content-Disposition"] == 'attachment; filename="out.zip"'
        assert charlie.get(address, {"path": "out"}).status_code == 404
        assert {bob.get(address, {"path": path}).status_code for path in ("..", "passwd", "missing")} == {404}
    assert charlie.get(f"{where}/files/search", {"q": "html"}).status_code == 404


def test_large_file_is_sent_chunk_by_chunk() -> None:
    """Django reads all chunks of a plain iterator before it sends the first."""
    read: list[int] = []

    def chunks() -> Iterator[bytes]:
        for number in range(3):
            read.append(number)
            yield b"x"

    async def first() -> bytes:
        async with aclosing(aiter(FileResponse(chunks(), "a\nb"))) as pieces:
            return await anext(pieces)

    assert (async_to_sync(first)(), read) == (b"x", [0])


def test_simulated_and_unstarted_pods_say_why_there_are_no_files(people: People, as_: As) -> None:
    job = people.submit("quiet")
    address = reverse("jobs:detail", args=[job.uid])
    assert "when the processes start" in as_(people.bob).get(address, {"tab": "files"}).content.decode()
    now = clock.now()
    Pod.objects.create(job=job, task="main", index=0, attempt=0, slot=0, version=1, created_at=now, phase="running")
    answer = as_(people.bob).get(f"/api/v1/jobs/{job.uid}/pods/main/0/files")
    assert (answer.status_code, "are simulated" in answer.json()["detail"]) == (409, True)
    assert "are simulated and write no files" in as_(people.bob).get(address, {"tab": "files"}).content.decode()
