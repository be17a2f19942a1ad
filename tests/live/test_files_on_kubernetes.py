"""Files of a pod on a real API server: uploaded in pieces, listed, edited and never replaced unseen, by REST and pages.

The kubelets of the test cluster run commands of all pods on this machine, in a folder that stands for the pod's.
"""

import base64
import hashlib
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from tests.controller.conftest import World, one_machine, world
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.plugin import grant_in_namespace
from tests.live.test_tools import browser
from tests.support.terminals import run_pod

from hekla.apps.jobs import services
from hekla.apps.jobs.models import Pod
from hekla.apps.usage.models import JobFolder
from hekla.backends.kubernetes.files import KubernetesFiles
from hekla.backends.kubernetes.uploads import KubernetesUploads
from hekla.domain.policies import LifecycleAction
from hekla.lib import clock

__all__ = ["browser", "one_machine", "world"]
pytestmark = [pytest.mark.kubernetes, pytest.mark.parametrize("world", ["kubernetes"], indirect=True)]
CONTENT = b"x" * 1_200_000


def test_files_of_a_running_pod_are_changed(
    world: World,
    browser: Client,
    small_cluster: ControlPlane,
    granted_namespace: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    for facet in (KubernetesFiles, KubernetesUploads):
        monkeypatch.setattr(facet.__init__, "__defaults__", (str(work),))
    pod = run_pod(world)
    refused = begin(browser, pod, 3, path="a")
    assert (refused.status_code, "applies rights-terminals.yaml" in refused.json()["detail"]) == (409, True)
    grant_in_namespace(small_cluster, "rights-terminals.yaml", granted_namespace)

    where = begin(browser, pod, len(CONTENT), path="data/words.txt")["Location"]
    assert patch(browser, where, 0, CONTENT[:1_000_000]).status_code == 204
    assert patch(browser, where, 0, b"late").json()["code"] == "stale_upload"
    assert browser.head(where)["Upload-Offset"] == "1000000"
    assert patch(browser, where, 1_000_000, CONTENT[1_000_000:]).status_code == 204
    assert (work / "data" / "words.txt").read_bytes() == CONTENT
    assert browser.get(where).json()["sha256"] == hashlib.sha256(CONTENT).hexdigest()
    refusal = begin(browser, pod, 3, path="data/words.txt").json()
    assert refusal["code"] == "file_exists", refusal
    assert begin(browser, pod, 3, path="../a").status_code == 404

    (work / "train.py").write_text("old\n")
    page, address = edit(pod, "train.py"), f"{reverse('jobs:detail', args=[pod.job.uid])}?tab=files&pod={pod.pk}"
    assert reverse("files:edit", args=[pod.pk]) in browser.get(address).content.decode()
    base = hashlib.sha256(b"old\n").hexdigest()
    assert base in browser.get(page).content.decode()
    (work / "train.py").write_text("of the program\n")
    conflict = browser.post(page, {"text": "mine\n", "base": base, "do": "save"})
    assert (conflict.status_code, "of the program" in conflict.content.decode()) == (409, True)
    theirs = hashlib.sha256(b"of the program\n").hexdigest()
    assert browser.post(page, {"text": "mine\n", "base": base, "other": theirs, "do": "replace"}).status_code == 302
    assert ((work / "train.py").read_text(), sorted(one.name for one in work.iterdir())) == (
        "mine\n", ["data", "train.py"],
    )  # fmt: skip

    full = {"tenant": world.tenant, "size": 2**30, "due_at": clock.now()}
    JobFolder.objects.update_or_create(job=pod.job, defaults=full)
    world.tenant.files_gib = 1
    world.tenant.save(update_fields=["files_gib"])
    assert begin(browser, pod, 3, path="b").json()["code"] == "files_full"
    world.tenant.files_gib = None
    world.tenant.save(update_fields=["files_gib"])
    services.command(pod.job, LifecycleAction.ABORT_JOB, user=world.alice, now=clock.now())
    world.reconcile_until(lambda: Pod.objects.get(pk=pod.pk).is_final)
    services.delete(pod.job, user=world.alice, now=clock.now())
    assert begin(browser, pod, 3, path="b").json()["detail"] == "The files of a deleted job are deleted."


def begin(browser: Client, pod: Pod, size: int, **facts: str) -> Any:
    metadata = ",".join(f"{key} {base64.b64encode(value.encode()).decode()}" for key, value in facts.items())
    headers = {"Upload-Length": str(size), "Upload-Metadata": metadata, "Tus-Resumable": "1.0.0"}
    return browser.post(reverse("api:v1:pod_uploads", args=[pod.job.uid, pod.task, pod.index]), headers=headers)


def patch(browser: Client, where: str, offset: int, data: bytes) -> Any:
    kind = "application/offset+octet-stream"
    return browser.patch(where, data, content_type=kind, headers={"Upload-Offset": str(offset)})


def edit(pod: Pod, path: str) -> str:
    return f"{reverse('files:edit', args=[pod.pk])}?path={path}"
