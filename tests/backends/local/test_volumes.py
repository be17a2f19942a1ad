"""Volumes on the local backend: folders below the working directory, or a refusal with a reason."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.backends.conftest import ClusterFixture

from hekla.backends.base import StartRefused
from hekla.domain.volumes import VolumeMount, VolumeSpec

CLAIM = {"volume_claim": {"storage": "1Gi"}}
SCRATCH: dict[str, Any] = {"empty_dir": {}}
MEMORY = {"empty_dir": {"medium": "Memory", "size_limit": "1Gi"}}


@pytest.fixture
def local(make_cluster: Callable[[str], ClusterFixture]) -> ClusterFixture:
    return make_cluster("local")


def volumes(source: dict[str, Any], *paths: str, **more: Any) -> dict[str, Any]:
    mounts = [VolumeMount(name="v", mount_path=path, **more) for path in paths]
    return {"volumes": [VolumeSpec(name="v", **source)], "volume_mounts": mounts}


def output(cluster: ClusterFixture, index: int, script: str, **fields: Any) -> str:
    key = cluster.started(cluster.order(index, script=script, **fields))
    cluster.ended(key)
    return cluster.log(key).strip()


def test_empty_directory_belongs_to_one_pod(local) -> None:
    fields = volumes(SCRATCH, "/work/deep/scratch")
    assert output(local, 0, "echo 1 > deep/scratch/a && cat deep/scratch/a", **fields) == "1"
    assert output(local, 1, "ls deep/scratch | wc -l", **fields) == "0"


def test_volume_may_be_mounted_twice_and_in_part(local) -> None:
    fields = volumes(SCRATCH, "/work/a", "/work/b")
    fields["volume_mounts"].append(VolumeMount(name="v", mount_path="/work/c", sub_path="part"))
    assert output(local, 0, "echo 1 > a/x && cat b/x && touch c/y && ls b/part", **fields) == "1\ny"


def test_pods_of_a_job_share_its_claim_until_the_job_is_removed(local) -> None:
    fields = volumes(CLAIM, "/work/out")
    assert output(local, 0, "echo checkpoint > out/last", **fields) == ""
    assert output(local, 1, "cat out/last", **fields) == "checkpoint"
    local.backend.remove("job")
    assert not local.backend.inventory().present
    assert output(local, 2, "ls out | wc -l", **fields) == "0"


def test_shared_memory_is_that_of_the_machine(local) -> None:
    assert output(local, 0, "test -d /dev/shm && echo yes", **volumes(MEMORY, "/dev/shm")) == "yes"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (volumes({"volume_claim_name": "data-sets"}, "/work/data"), "“data-sets” is one of a Kubernetes cluster"),
        (volumes(SCRATCH, "/data"), "such as at /work/v"),
        (volumes(CLAIM, "/dev/shm"), "share its root"),
        (volumes(SCRATCH, "/work/a", "/work/a/b"), "lies within another volume"),
    ],
)
def test_unsupported_mount_is_refused_with_a_reason(local, fields, words) -> None:
    with pytest.raises(StartRefused, match=words):
        local.start(local.order(**fields))


@pytest.mark.parametrize("source", [SCRATCH, CLAIM])
@pytest.mark.parametrize("folder", ["out", "out/deep/sub"])
def test_working_directory_may_be_in_a_volume(local, source, folder) -> None:
    fields = volumes(source, "/work/out")
    script = f"echo 1 > last && cat $HOME/{folder}/last"
    assert output(local, 0, script, working_dir=folder, **fields) == "1"


def test_working_directory_may_be_in_a_part_of_a_volume(local) -> None:
    assert output(local, 0, "echo 1 > last", working_dir="out/sub", **volumes(CLAIM, "/work/out", sub_path="a")) == ""
    assert output(local, 1, "cat out/a/sub/last", **volumes(CLAIM, "/work/out")) == "1"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (volumes(CLAIM, "/work/v", sub_path="a"), "“a” of the volume “v” cannot be made: “v/a” is there"),
        (volumes(CLAIM, "/work/v", sub_path="a/b"), "“a/b” of the volume “v” cannot be made: “v/a” is there"),
        ({"working_dir": "out/a/b", **volumes(CLAIM, "/work/out")}, "The working folder “out/a/b” cannot be made"),
    ],
)
def test_file_of_an_earlier_pod_at_a_mount_path_is_reported(local, fields, words) -> None:
    output(local, 0, "echo 1 > out/a", **volumes(CLAIM, "/work/out"))
    with pytest.raises(StartRefused, match=words):
        local.start(local.order(1, **fields))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"working_dir": "etc/one"}, "“etc/one” cannot be made"),
        (volumes(SCRATCH, "/work/etc"), "Nothing can be mounted at “/work/etc”"),
        (volumes(SCRATCH, "/work/etc/one/b"), "“/work/etc/one/b” cannot be made: “etc/one” is there"),
    ],
)
def test_file_of_the_job_at_a_mount_path_is_reported(local, fields, words) -> None:
    with pytest.raises(StartRefused, match=words):
        local.start(local.order(files={"etc/one": "1"}, **fields))


@pytest.mark.parametrize(
    "fields",
    [
        {"files": {"é" * 128: ""}},
        {"working_dir": f"a/{'x' * 256}"},
        volumes(SCRATCH, f"/work/{'x' * 256}/b"),
        volumes(CLAIM, "/work/a", sub_path="x" * 256),
    ],
)
def test_too_long_name_is_refused(local, fields) -> None:
    with pytest.raises(StartRefused, match="may have 255 bytes"):
        local.start(local.order(**fields))
