"""Volumes of pods of one machine: folders of their own below the working folder, or a refusal that says why."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.backends.conftest import Place

from hekla.backends.base import StartRefused
from hekla.domain.volumes import VolumeMount, VolumeSpec

CLAIM = {"volume_claim": {"storage": "1Gi"}}
SCRATCH: dict[str, Any] = {"empty_dir": {}}
MEMORY = {"empty_dir": {"medium": "Memory", "size_limit": "1Gi"}}


@pytest.fixture
def local(make_place: Callable[[str], Place]) -> Place:
    return make_place("local")


def volumes(source: dict[str, Any], *paths: str, **more: Any) -> dict[str, Any]:
    mounts = [VolumeMount(name="v", mount_path=path, **more) for path in paths]
    return {"volumes": [VolumeSpec(name="v", **source)], "volume_mounts": mounts}


def said(place: Place, index: int, script: str, **fields: Any) -> str:
    key = place.started(place.order(index, script=script, **fields))
    place.ended(key)
    return place.log(key).strip()


def test_an_empty_directory_is_there_below_the_working_folder_for_one_pod_alone(local) -> None:
    wanted = volumes(SCRATCH, "/work/deep/scratch")
    assert said(local, 0, "echo 1 > deep/scratch/a && cat deep/scratch/a", **wanted) == "1"
    assert said(local, 1, "ls deep/scratch | wc -l", **wanted) == "0"


def test_a_volume_may_be_at_two_places_and_a_part_of_it_at_one(local) -> None:
    wanted = volumes(SCRATCH, "/work/a", "/work/b")
    wanted["volume_mounts"].append(VolumeMount(name="v", mount_path="/work/c", sub_path="part"))
    assert said(local, 0, "echo 1 > a/x && cat b/x && touch c/y && ls b/part", **wanted) == "1\ny"


def test_pods_of_a_job_share_a_claim_that_is_made_for_it_and_it_goes_with_the_job(local) -> None:
    wanted = volumes(CLAIM, "/work/out")
    assert said(local, 0, "echo checkpoint > out/last", **wanted) == ""
    assert said(local, 1, "cat out/last", **wanted) == "checkpoint"
    local.backend.remove("job")
    assert not local.backend.inventory().present
    assert said(local, 2, "ls out | wc -l", **wanted) == "0"


def test_shared_memory_is_the_machines_own(local) -> None:
    assert said(local, 0, "test -d /dev/shm && echo yes", **volumes(MEMORY, "/dev/shm")) == "yes"


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (volumes({"volume_claim_name": "data-sets"}, "/work/data"), "“data-sets” is one of a Kubernetes cluster"),
        (volumes(SCRATCH, "/data"), "such as at /work/v"),
        (volumes(CLAIM, "/dev/shm"), "share its root"),
        (volumes(SCRATCH, "/work/a", "/work/a/b"), "lies within another volume"),
    ],
)
def test_what_a_machine_cannot_mount_is_refused_with_the_reason(local, wanted, words) -> None:
    with pytest.raises(StartRefused, match=words):
        local.start(local.order(**wanted))


@pytest.mark.parametrize("source", [SCRATCH, CLAIM])
@pytest.mark.parametrize("folder", ["out", "out/deep/sub"])
def test_the_working_folder_may_be_a_volume_or_within_one(local, source, folder) -> None:
    wanted = volumes(source, "/work/out")
    script = f"echo 1 > last && cat $HOME/{folder}/last"
    assert said(local, 0, script, working_dir=folder, **wanted) == "1"


def test_the_working_folder_may_be_within_a_part_of_a_volume(local) -> None:
    assert said(local, 0, "echo 1 > last", working_dir="out/sub", **volumes(CLAIM, "/work/out", sub_path="a")) == ""
    assert said(local, 1, "cat out/a/sub/last", **volumes(CLAIM, "/work/out")) == "1"


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (volumes(CLAIM, "/work/v", sub_path="a"), "“a” of the volume “v” cannot be made: “a” is there"),
        (volumes(CLAIM, "/work/v", sub_path="a/b"), "“a/b” of the volume “v” cannot be made: “a” is there"),
        ({"working_dir": "out/a/b", **volumes(CLAIM, "/work/out")}, "The working folder “out/a/b” cannot be made"),
    ],
)
def test_a_file_of_an_earlier_pod_in_the_place_of_a_folder_is_told(local, wanted, words) -> None:
    said(local, 0, "echo 1 > out/a", **volumes(CLAIM, "/work/out"))
    with pytest.raises(StartRefused, match=words):
        local.start(local.order(1, **wanted))


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ({"working_dir": "etc/one"}, "“etc/one” cannot be made"),
        (volumes(SCRATCH, "/work/etc"), "Nothing can be mounted at “/work/etc”"),
        (volumes(SCRATCH, "/work/etc/one/b"), "“/work/etc/one/b” cannot be made: “etc/one” is there"),
    ],
)
def test_a_file_of_the_job_in_the_place_of_a_folder_is_told(local, wanted, words) -> None:
    with pytest.raises(StartRefused, match=words):
        local.start(local.order(files={"etc/one": "1"}, **wanted))


@pytest.mark.parametrize(
    "wanted",
    [
        {"files": {"é" * 128: ""}},
        {"working_dir": f"a/{'x' * 256}"},
        volumes(SCRATCH, f"/work/{'x' * 256}/b"),
        volumes(CLAIM, "/work/a", sub_path="x" * 256),
    ],
)
def test_a_name_that_no_file_system_takes_is_refused(local, wanted) -> None:
    with pytest.raises(StartRefused, match="may have 255 bytes"):
        local.start(local.order(**wanted))
