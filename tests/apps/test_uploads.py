"""Uploads into the folder of a pod: resumable, for those who may act on the job, and never past an older writer."""

import base64
import hashlib
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from django.test import Client
from tests.apps.conftest import People
from tests.apps.pod_files import pod, work_of

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.scopes import Scope
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.jobs.models import FileUpload, Pod
from hekla.apps.jobs.services import uploads
from hekla.backends.base import BackendError
from hekla.backends.local.uploads import LocalUploads
from hekla.lib import clock
from hekla.pod_files import uploading

__all__ = ["pod"]
As = Callable[[User], Client]
KIND = "application/offset+octet-stream"


def begin(client: Client, pod: Pod, size: object, **facts: str) -> Any:
    metadata = ",".join(f"{key} {base64.b64encode(value.encode()).decode()}" for key, value in facts.items())
    headers = {"Upload-Length": str(size), "Upload-Metadata": metadata, "Tus-Resumable": "1.0.0"}
    return client.post(f"/api/v1/jobs/{pod.job.uid}/pods/main/0/uploads", headers=headers)


def patch(client: Client, where: str, offset: object, data: bytes, **headers: str) -> Any:
    return client.patch(where, data, content_type=KIND, headers={"Upload-Offset": str(offset), **headers})


def test_upload_is_resumed_and_recorded(people: People, as_: As, pod: Pod, tmp_path: Path) -> None:
    alice, content = as_(people.alice), b"x" * 1_500_000
    first = begin(alice, pod, len(content), path="data/words.txt")
    assert (first.status_code, first.json()["received_bytes"], first["Upload-Offset"]) == (201, 0, "0")
    where = first["Location"]
    assert patch(alice, where, 0, content[:1_000_000]).status_code == 204
    (unfinished,) = alice.get(f"/api/v1/jobs/{pod.job.uid}/pods/main/0/uploads").json()["uploads"]
    assert (where.endswith(unfinished["uid"]), unfinished["received_bytes"]) == (True, 1_000_000)
    found = alice.head(where)
    assert (found["Upload-Offset"], found["Upload-Length"], found["Tus-Resumable"]) == ("1000000", "1500000", "1.0.0")
    assert not (work_of(pod, tmp_path) / "data" / "words.txt").exists()
    assert patch(alice, where, 1_000_000, content[1_000_000:])["Upload-Offset"] == "1500000"
    assert (work_of(pod, tmp_path) / "data" / "words.txt").read_bytes() == content
    digest = hashlib.sha256(content).hexdigest()
    assert alice.get(where).json()["sha256"] == digest
    event = LoggedEvent.objects.get(kind="FileUploaded")
    facts = (event.payload["path"], event.payload["size"], event.payload["sha256"], event.actor_id)
    assert facts == ("data/words.txt", 1_500_000, digest, people.alice.pk)
    assert patch(alice, where, 1_500_000, b"").status_code == 409  # it is finished
    assert alice.delete(where).status_code == 204
    assert (work_of(pod, tmp_path) / "data" / "words.txt").exists()


def test_older_request_writes_nothing(people: People, as_: As, pod: Pod, tmp_path: Path) -> None:
    alice = as_(people.alice)
    where = begin(alice, pod, 9, path="a")["Location"]
    older = patch(alice, where, 0, b"abc")["Upload-Fence"]
    assert alice.head(where)["Upload-Offset"] == "3"
    assert patch(alice, where, 3, b"old", **{"Upload-Fence": older}).json()["code"] == "stale_upload"
    newer = patch(alice, where, 3, b"new")["Upload-Fence"]
    assert patch(alice, where, 6, b"end", **{"Upload-Fence": newer}).status_code == 204
    assert (work_of(pod, tmp_path) / "a").read_bytes() == b"abcnewend"


@pytest.mark.parametrize(
    ("size", "facts", "status"),
    [
        (3, {"path": "../a"}, 404),
        (3, {"path": "/etc/a"}, 404),
        (3, {"path": "passwd/a"}, 404),
        (3, {"path": "out"}, 409),
        (3, {"path": ".ssh/authorized_keys"}, 404),
        (3, {"path": ".hekla-upload-1"}, 404),
        (3, {"path": "a/" * 3000}, 400),
        (3, {"path": "a\0"}, 400),
        (3, {}, 400),
        ("x", {"path": "a"}, 400),
        (-1, {"path": "a"}, 400),
        (2**50, {"path": "a"}, 413),
        (3, {"path": "a", "replaces": "all"}, 400),
        (3, {"path": "passwd"}, 409),
        (3, {"path": "new", "replaces": "0" * 64}, 409),
        (0, {"filename": "empty"}, 201),
        (3, {"path": "%2e%2e/a"}, 201),
        (3, {"path": "<script>\n\u202e.txt"}, 201),
    ],
)
def test_begin_is_checked(
    people: People, as_: As, pod: Pod, tmp_path: Path, size: object, facts: dict[str, str], status: int
) -> None:
    assert begin(as_(people.alice), pod, size, **facts).status_code == status
    assert FileUpload.objects.count() == (status == 201)
    pods = tmp_path / "local" / people.cluster.name / "pods"
    outside = {path.name for path in pods.rglob("*") if "work" not in path.parts}
    assert outside == {pod.job.uid.hex, f"{pod.job.uid.hex}-main-0-0"}


def test_file_is_replaced_only_with_its_hash(people: People, as_: As, pod: Pod, tmp_path: Path) -> None:
    alice, file = as_(people.alice), work_of(pod, tmp_path) / "config.yaml"
    file.write_text("old")
    assert begin(alice, pod, 3, path="config.yaml").json()["code"] == "file_exists"
    where = begin(alice, pod, 3, path="config.yaml", replaces=hashlib.sha256(b"old").hexdigest())["Location"]
    file.write_text("changed by the job")
    refused = patch(alice, where, 0, b"new")
    assert (refused.status_code, refused.json()["code"], file.read_text()) == (409, "file_exists", "changed by the job")
    assert alice.delete(where).status_code == 204
    assert not list(file.parent.glob(".hekla*"))
    where = begin(alice, pod, 3, path="config.yaml", replaces="*")["Location"]
    assert patch(alice, where, 0, b"new").status_code == 204
    assert file.read_text() == "new"


def test_who_may_upload(people: People, as_: As, pod: Pod) -> None:
    assert begin(as_(people.bob), pod, 3, path="a").status_code == 403
    assert begin(as_(people.charlie), pod, 3, path="a").status_code == 404
    assert as_(people.bob).get(f"/api/v1/jobs/{pod.job.uid}/pods/main/0/uploads").status_code == 403
    where = begin(as_(people.alice), pod, 3, path="a")["Location"]
    for person, status in ((people.bob, 403), (people.charlie, 404)):
        client = as_(person)
        answers = [client.get(where), client.head(where), patch(client, where, 0, b"abc"), client.delete(where)]
        assert {answer.status_code for answer in answers} == {status}
    csrf = Client(enforce_csrf_checks=True)
    csrf.force_login(people.alice, backend="django.contrib.auth.backends.ModelBackend")
    assert patch(csrf, where, 0, b"abc").status_code == 403


def test_wrong_pieces_are_refused(people: People, as_: As, pod: Pod, tmp_path: Path) -> None:
    alice = as_(people.alice)
    where = begin(alice, pod, 3, path="a")["Location"]
    assert patch(alice, where, 1, b"bc").status_code == 409
    assert patch(alice, where, 0, b"abcd").status_code == 409
    assert patch(alice, where, "x", b"abc").status_code == 400
    assert patch(alice, where, 0, bytes(2**20 + 1)).status_code == 413
    assert patch(alice, where, 0, b"abc", **{"Tus-Resumable": "0.2"}).status_code == 412
    draft = next(work_of(pod, tmp_path).glob(".hekla*"))
    draft.unlink()
    draft.symlink_to("/etc/passwd")
    assert patch(alice, where, 0, b"abc").status_code == 404
    assert alice.head(where)["Upload-Offset"] == "0"
    Pod.objects.filter(pk=pod.pk).update(phase="succeeded")  # the folder of an ended pod stays
    assert begin(alice, pod, 0, path="late").status_code == 201
    type(pod.job).objects.filter(pk=pod.job.pk).update(deleted_at=clock.now())
    assert begin(alice, pod, 0, path="later").status_code == 409


def test_uploads_are_bounded_and_expire(
    people: People, as_: As, pod: Pod, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = as_(people.alice)
    monkeypatch.setattr(uploads, "_MOST_OPEN", 2)
    for name in ("a", "b"):
        begin(alice, pod, 3, path=name)
    assert "too many unfinished" in begin(alice, pod, 3, path="c").json()["detail"]
    FileUpload.objects.filter(path="a").update(expires_at=clock.now() - timedelta(seconds=1))
    assert begin(alice, pod, 3, path="c").status_code == 201
    assert len(list(work_of(pod, tmp_path).glob(".hekla*"))) == 2
    monkeypatch.setattr(uploads, "_MOST_OPEN_BYTES", 100)
    assert begin(alice, pod, 99, path="d").status_code == 409


def test_nobody_waits_for_silent_pods_of_others(
    people: People, as_: As, pod: Pod, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        begin(as_(people.alice), pod, 3, path=name)
    FileUpload.objects.update(expires_at=clock.now() - timedelta(seconds=1))
    assert begin(as_(people.ada), pod, 3, path="c").status_code == 201
    assert FileUpload.objects.count() == 3
    discarded = Mock(side_effect=BackendError("The pod did not answer in time."))
    monkeypatch.setattr(LocalUploads, "discard", discarded)
    assert (uploading.drop_expired(now=clock.now()), discarded.call_count) == (2, 1)
    assert FileUpload.objects.count() == 1


def test_late_request_does_not_stop_a_newer_one(people: People, as_: As, pod: Pod) -> None:
    alice = as_(people.alice)
    where = begin(alice, pod, 9, path="a")["Location"]
    newer = patch(alice, where, 0, b"abc")["Upload-Fence"]
    assert patch(alice, where, 0, b"ab").json()["code"] == "stale_upload"  # it was sent before, and arrives now
    assert patch(alice, where, 3, b"defghi", **{"Upload-Fence": newer}).status_code == 204


def test_token_that_only_reads_cannot_take_over_an_upload(people: People, as_: As, pod: Pod) -> None:
    where = begin(as_(people.alice), pod, 3, path="a")["Location"]
    statuses = []
    for scopes in ([Scope.READ], [Scope.READ, Scope.JOBS]):
        now, day = clock.now(), timedelta(days=1)
        secret = accounts.create_token(people.alice, name="t", lifetime=day, scopes=scopes, now=now)
        statuses.append(Client().head(where, headers={"Authorization": f"Bearer {secret}"}).status_code)
    assert statuses == [403, 200]
