"""A pod that continues in the folder of an ended one: it has its files, and what that pod left harms nothing."""

import dataclasses
import json
import os
from pathlib import Path

import pytest
from tests.backends.conftest import ClusterFixture
from tests.backends.local.test_process_exec import run, running

from hekla.backends.base import BackendError, PodKey, PodOrder, StartRefused
from hekla.backends.files import NoSuchFileError
from hekla.backends.local import frozen_folders
from hekla.backends.local.pod_folder import PodFolder
from hekla.domain.volumes import VolumeMount, VolumeSpec

HOSTILE = """
ln -s /etc/passwd to-file; ln -s /etc to-folder; ln -s .. up; ln loop loop 2>/dev/null
echo mine > file; ln file again; mkfifo pipe; truncate -s 900G sparse
mkdir -p shut/in; echo deep > shut/in/file; chmod 0 shut
folder=deep; for n in $(seq 80); do mkdir $folder; folder=$folder/d; done
dd if=/dev/zero of=big bs=64k count=16 2>/dev/null
exit 1
"""
VOLUMES = {
    "volumes": [
        VolumeSpec(name="own", empty_dir={}),
        VolumeSpec(name="shared", volume_claim={"storage": "1Gi", "access_modes": ["ReadWriteOnce"]}),
    ],
    "volume_mounts": [VolumeMount(name=name, mount_path=f"/work/{name}") for name in ("own", "shared")],
}


def failed(local: ClusterFixture, script: str = HOSTILE, **fields: object) -> PodKey:
    key = local.started(local.order(job="failed", script=script, **fields))
    local.ended(key)
    return key


def continuing(local: ClusterFixture, key: PodKey, script: str = "exec sleep 1000", **fields: object) -> PodOrder:
    return dataclasses.replace(local.order(job="debug", script=script, **fields), frozen=key, files={"file": "other"})


def folder(local: ClusterFixture, key: PodKey) -> Path:
    return local.home / "local" / "c1" / "pods" / key.job / key.name


async def test_pod_continues_in_the_files_and_volumes_of_an_ended_one(local: ClusterFixture) -> None:
    script = "echo bad > input; echo one > own/a; echo two > shared/b; exit 1"
    key = failed(local, script, files={"file": "first"}, secrets={".ssh/id": "key"}, **VOLUMES)
    debug = local.started(continuing(local, key, **VOLUMES))
    local.until(debug, "running")
    found, errors, code = await run(local, debug, "sh", "-c", "pwd; cat input file own/a shared/b .ssh/id")
    assert (found, errors, code) == ("/home/pod\nbad\nfirstone\ntwo\nkey", "", 0)
    await run(local, debug, "sh", "-c", "echo good > input; echo new > made")
    assert (folder(local, key) / "work" / "input").read_text() == "good\n"
    listed = [one.name for one in local.backend.files.list_folder(debug, "").entries]
    assert "made" in listed
    with local.backend.files.open_file(debug, "own/a") as file:
        assert file.read() == b"one\n"
    local.backend.remove("debug")
    assert (folder(local, key) / "work" / "made").exists()


def test_what_a_pod_left_is_measured_and_deleted_without_harm(local: ClusterFixture) -> None:
    key, outside = failed(local), Path("/etc/passwd").read_text()
    (folder(local, key) / "work" / "by-name").symlink_to(local.home)
    size = local.backend.frozen.measure(key)
    assert 2**20 <= size < 8 * 2**20  # neither the hole of a file nor what links lead to
    local.backend.frozen.release(key)
    local.backend.frozen.release(key)
    assert local.backend.frozen.measure(key) == 0
    assert not (folder(local, key) / "work").exists()
    assert (Path("/etc/passwd").read_text(), local.home.exists()) == (outside, True)
    assert local.observation(key)
    assert local.log(key) == ""


def test_measuring_is_bounded(local: ClusterFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    key = failed(local, "for n in $(seq 50); do echo x > $n; done; exit 1")
    whole = local.backend.frozen.measure(key)
    monkeypatch.setattr(frozen_folders, "MOST_ENTRIES", 10)
    assert 0 < local.backend.frozen.measure(key) < whole


async def test_links_of_the_ended_pod_lead_nowhere_else(local: ClusterFixture) -> None:
    (local.home / "secret-key").write_text("console's own")
    key = failed(local, f"ln -s {local.home}/secret-key link; mkdir own; exit 1")
    debug = running(local, job="debug", frozen=key)
    _found, errors, code = await run(local, debug, "cat", "link")
    assert (code, "console" in errors) == (1, False)
    with pytest.raises(NoSuchFileError):
        local.backend.files.open_file(debug, "link")


def test_pod_continues_only_where_one_of_its_tenant_ended(local: ClusterFixture) -> None:
    running_key = local.started(local.long(job="running"))
    with pytest.raises(BackendError, match="has not ended yet"):
        local.start(continuing(local, running_key))
    key = failed(local)
    with pytest.raises(StartRefused, match="belong to another tenant"):
        local.start(continuing(local, dataclasses.replace(key, tenant="others")))
    with pytest.raises(StartRefused, match="are not there"):
        local.start(continuing(local, PodKey("nothing", "worker", 0, 0)))
    local.backend.frozen.release(key)
    with pytest.raises(StartRefused, match="are deleted"):
        local.start(continuing(local, key))
    os.symlink("/etc", folder(local, key) / "work")
    with pytest.raises(StartRefused, match="are deleted"):
        local.start(continuing(local, key))


def test_running_pod_is_not_released(local: ClusterFixture) -> None:
    key = running(local)
    with pytest.raises(BackendError, match="has not ended yet"):
        local.backend.frozen.release(key)
    assert (folder(local, key) / "work").exists()


def test_container_continues_in_the_files_of_an_ended_one(containers: ClusterFixture) -> None:
    """Also if that one has put a link to a folder of the machine in the place of a folder that is mounted."""
    link = "echo bad > input; rm -r keys; ln -s /etc keys; exit 1"
    key = failed(containers, link, files={"keys/id": "key"}, mounts={"/keys": "keys"})
    order = continuing(containers, key, "cat input; ls /keys", files={"keys/id": "key"}, mounts={"/keys": "keys"})
    debug = containers.started(dataclasses.replace(order, files={"keys/id": "key"}))
    assert containers.ended(debug).exit_code != 0
    assert containers.log(debug).startswith("bad\n")
    assert "passwd" not in containers.log(debug)
    assert [one.name for one in containers.backend.files.list_folder(debug, "").entries] == ["input", "keys"]
    processes = dataclasses.replace(order, key=dataclasses.replace(order.key, job="process"))
    with pytest.raises(StartRefused, match="between containers and processes"):
        frozen_folders.source_of(processes, lambda _key: PodFolder(str(folder(containers, key))), in_containers=False)


def test_order_that_names_no_pod_leads_nowhere(local: ClusterFixture, tmp_path: Path) -> None:
    key = failed(local, "exit 1")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "secret").write_text("console's own")
    local.backend.frozen.release(key)
    written = json.loads((folder(local, key) / "order.json").read_text())
    for hostile in (str(tmp_path), 7, ["a"], "a:../../x-0-0", "nothing:worker-0-0"):
        (folder(local, key) / "order.json").write_text(json.dumps({**written, "frozen": hostile}))
        with pytest.raises(NoSuchFileError):
            local.backend.files.open_file(key, "secret")
