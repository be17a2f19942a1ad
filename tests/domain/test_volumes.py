"""Validation of a job's volumes: accepted volumes, and the problems of invalid ones."""

import pytest

from hekla.domain.errors import Invalid
from hekla.domain.jobspec import JobSpec

SHM = {"name": "v", "empty_dir": {"medium": "Memory", "size_limit": "8Gi"}}
MOUNT = {"name": "v", "mount_path": "/data"}


def job(*volumes, mounts=(MOUNT,), replicas=1, **fields):
    task = {"name": "worker", "replicas": replicas, "command": ["run"], "volume_mounts": list(mounts)}
    return {"name": "digits", "volumes": list(volumes), "tasks": [task], **fields}


def at(path, **more):
    return job(SHM, mounts=[{**MOUNT, "mount_path": path, **more}])


def claim(**fields):
    return {"name": "v", "volume_claim": {"storage": "1Gi", **fields}}


@pytest.mark.parametrize(
    "volume",
    [
        SHM,
        {"name": "v", "empty_dir": {}},
        {"name": "v", "volume_claim_name": "data-sets.all"},
        claim(access_modes=["ReadWriteMany"], storage_class="nfs"),
    ],
)
def test_each_kind_of_volume_is_accepted_unchanged(volume):
    document = job(volume)
    assert JobSpec.parse(document).document()["volumes"] == [volume]


@pytest.mark.parametrize("path", ["/dev/shm", "/dev/shm/x", "/work/out", "/root/.cache", "/etc/team"])
def test_accepted_mount_paths(path):
    assert JobSpec.parse(at(path)).tasks[0].volume_mounts[0].mount_path == path


def test_mount_path_is_normalized():
    assert JobSpec.parse(at("//data//sets/./x/")).tasks[0].volume_mounts[0].mount_path == "/data/sets/x"


PATH = "tasks.0.volume_mounts.0.mount_path"


@pytest.mark.parametrize(
    ("document", "path", "sentence"),
    [
        (at("data"), PATH, "an absolute path"),
        (at("/data/../etc"), PATH, "an absolute path"),
        (at("/a:b"), PATH, "or a colon"),
        (at("/"), PATH, "cannot replace the root folder"),
        (at("/proc/1"), PATH, "belongs to the system"),
        (at("/dev"), PATH, "Only /dev/shm can be mounted there"),
        (at("/work"), PATH, "the pod's working folder"),
        (at("/work/."), PATH, "the pod's working folder"),
        (at(""), PATH, "an absolute path"),
        (at("/a", sub_path="/x"), "tasks.0.volume_mounts.0.sub_path", "relative path in the volume"),
        (at("/a", sub_path="../x"), "tasks.0.volume_mounts.0.sub_path", "relative path in the volume"),
        (job(SHM, mounts=[{**MOUNT, "name": "w"}, MOUNT]), "tasks.0.volume_mounts.0.name", "no volume “w”"),
        (job({**SHM, "name": "scratch"}, mounts=[{**MOUNT, "name": "scrach"}]), None, "Did you mean “scratch”?"),
        (job(SHM, mounts=[MOUNT, {**MOUNT, "mount_path": "/data/"}]), "tasks.0.volume_mounts.1.mount_path", "at /data"),
        (job(SHM, {**SHM, "name": "w"}), "volumes.w", "No task mounts the volume “w”"),
        (job(SHM, SHM), "volumes.1.name", "Another volume has the name “v”"),
        (job(SHM, mounts=[]), "volumes.v", "No task mounts"),
        (job({"name": "v"}), "volumes.0", "Set exactly one of volume_claim_name"),
        (job({**SHM, "volume_claim_name": "x"}), "volumes.0", "Set exactly one of volume_claim_name"),
        (
            job({"name": "v", "volume_claim_name": "Data"}),
            "volumes.0.volume_claim_name",
            "name for a Kubernetes object",
        ),
        (job({"name": "v", "host_path": "/mnt"}), "volumes.0.host_path", "Unknown field “host_path”"),
        (job({"name": "v", "volume_claim": {}}), "volumes.0.volume_claim.storage", "Required"),
        (job(claim(storage="0")), "volumes.0.volume_claim.storage", "more than zero"),
        (job(claim(storage="big")), "volumes.0.volume_claim.storage", "is not an amount"),
        (job(claim(access_modes=["ReadWrite"])), "volumes.0.volume_claim.access_modes.0", "is not one of"),
        (job(claim(access_modes=[])), "volumes.0.volume_claim.access_modes", "At least one"),
        (job({"name": "v", "empty_dir": {"size_limit": "-1"}}), "volumes.0.empty_dir.size_limit", "not an amount"),
        (job(claim(access_modes=["ReadWriteOncePod"]), replicas=2), "tasks.0.volume_mounts.0.name", "by one pod only"),
        (job(*[{**SHM, "name": f"v{n}"} for n in range(33)]), "volumes", "The limit is 32"),
    ],
)
def test_problem_has_its_path_and_a_message(document, path, sentence):
    with pytest.raises(Invalid) as raised:
        JobSpec.parse(document)
    problems = {problem.path: problem.message for problem in raised.value.problems}
    assert path is None or path in problems
    assert sentence in (" ".join(problems.values()) if path is None else problems[path])


@pytest.mark.parametrize(
    ("path", "file"), [("/work/conf", "conf/a.yaml"), ("/work/a.txt/deep", "a.txt"), ("/work/a.txt", "a.txt")]
)
def test_volume_cannot_hide_a_file_of_the_job(path, file):
    with pytest.raises(Invalid, match="is there"):
        JobSpec.parse({**at(path), "files": {file: ""}})


def test_read_write_once_claim_of_several_pods_has_a_remark():
    (problems,) = JobSpec.parse(job(claim(), replicas=2)).remarks
    assert problems.startswith("volumes.v: A claim with ReadWriteOnce")
    assert not JobSpec.parse(job(claim(), replicas=1)).remarks
    assert not JobSpec.parse(job(claim(access_modes=["ReadWriteMany"]), replicas=2)).remarks
