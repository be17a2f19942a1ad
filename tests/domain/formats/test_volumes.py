"""Volumes in manifests: what of them becomes a job's, and that it is written back."""

import pytest

from hekla.domain import formats
from hekla.domain.errors import Invalid
from hekla.domain.jobspec import JobSpec
from hekla.domain.schedules import ScheduleSpec

FORM = {form.word: form for form in formats.FORMATS}
POD = """
        spec:
          containers:
          - name: {container}
            command: [python, train.py]
            volumeMounts:
            - {{name: shm, mountPath: /dev/shm}}
            - {{name: data, mountPath: /data, subPath: imagenet, readOnly: true}}
          volumes:
          - {{name: shm, emptyDir: {{medium: Memory, sizeLimit: 8Gi}}}}
          - {{name: data, persistentVolumeClaim: {{claimName: data-sets}}}}
          - {{name: unused, emptyDir: {{}}}}
"""
TORCH = f"""
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {{name: a}}
spec:
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      template: {POD.format(container="pytorch")}
    Worker:
      replicas: 2
      template: {POD.format(container="pytorch")}
"""
PLAIN = f"""
apiVersion: batch/v1
kind: Job
metadata: {{name: a}}
spec:
  template: {POD.format(container="main")}
"""
VOLCANO = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: a}
spec:
  volumes:
  - {mountPath: /data, volumeClaimName: data-sets}
  - mountPath: /out
    volumeClaim: {accessModes: [ReadWriteMany], storageClassName: nfs, resources: {requests: {storage: 5Gi}}}
  tasks:
  - name: ps
    template: {spec: {containers: [{command: [run]}]}}
  - name: worker
    template: {spec: {containers: [{command: [run]}]}}
"""
SHM = {"name": "shm", "empty_dir": {"medium": "Memory", "size_limit": "8Gi"}}
DATA = {"name": "data", "volume_claim_name": "data-sets"}
MOUNTS = [
    {"name": "shm", "mount_path": "/dev/shm"},
    {"name": "data", "mount_path": "/data", "sub_path": "imagenet", "read_only": True},
]


@pytest.mark.parametrize("text", [TORCH, PLAIN])
def test_claims_and_empty_directories_of_a_pod_template_become_the_jobs_volumes(text):
    loaded = formats.load(text)
    document = loaded.spec.document()
    assert document["volumes"] == [DATA, SHM]
    assert all(task["volume_mounts"] == MOUNTS for task in document["tasks"])
    assert not [told for told in loaded.warnings if "olume" in told]


def test_a_claim_that_is_mounted_read_only_as_a_whole_is_so_in_all_places():
    text = PLAIN.replace(", readOnly: true", "").replace("claimName: data-sets", "claimName: data-sets, readOnly: true")
    assert formats.load(text).spec.document()["tasks"][0]["volume_mounts"] == MOUNTS


def test_volumes_of_a_volcano_job_are_mounted_by_all_its_tasks():
    loaded = formats.load(VOLCANO)
    document = loaded.spec.document()
    claim = {"storage": "5Gi", "access_modes": ["ReadWriteMany"], "storage_class": "nfs"}
    assert document["volumes"] == [
        {"name": "data-sets", "volume_claim_name": "data-sets"},
        {"name": "volume-1", "volume_claim": claim},
    ]
    mounts = [{"name": "data-sets", "mount_path": "/data"}, {"name": "volume-1", "mount_path": "/out"}]
    assert [task["volume_mounts"] for task in document["tasks"]] == [mounts, mounts]
    assert loaded.warnings == ()


def test_volumes_of_one_name_that_differ_from_template_to_template_stay_two():
    first, second = TORCH.split("    Worker:")
    spec = formats.load(f"{first}    Worker:{second.replace('8Gi', '1Gi')}").spec
    assert {volume.name: volume.empty_dir.size_limit for volume in spec.volumes if volume.empty_dir} == {
        "shm": "8Gi",
        "shm-2": "1Gi",
    }
    assert [task.volume_mounts[0].name for task in spec.tasks] == ["shm", "shm-2"]


CLAIM = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: %s, annotations: {hekla.io/deleted-with-job: "true"}}
spec: {accessModes: [ReadWriteMany], resources: {requests: {storage: 1Gi}}}
"""


def test_two_claims_that_ask_for_the_same_stay_two() -> None:
    text = TORCH.replace("claimName: data-sets", "claimName: one", 1).replace("claimName: data-sets", "claimName: two")
    spec = formats.load(f"{CLAIM % 'one'}---{CLAIM % 'two'}---{text}").spec
    assert [volume.name for volume in spec.volumes if volume.volume_claim] == ["data", "data-2"]
    assert [task.volume_mounts[1].name for task in spec.tasks] == ["data", "data-2"]


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (
            f"{CLAIM % 'data-sets'}---{PLAIN}".replace("spec: {acc", "spec: {storageClassName: '', acc"),
            "data-sets.spec",
        ),
        (VOLCANO.replace("storageClassName: nfs", "storageClassName: ''"), "spec.volumes[1].volumeClaim"),
    ],
)
def test_a_claim_for_which_no_class_is_asked_tells_that_it_gets_the_usual_one(text: str, path: str) -> None:
    loaded = formats.load(text)
    assert [claim.storage_class for volume in loaded.spec.volumes if (claim := volume.volume_claim)] == [""]
    assert [told for told in loaded.warnings if f"{path}.storageClassName: ignored: claims without" in told]
    assert "storageClassName" not in formats.dump(loaded.spec)


def test_a_claim_for_a_job_that_no_job_mounts_is_told() -> None:
    told = "PersistentVolumeClaim stray: ignored: no job mounts it, so it is not created."
    beside = f"{CLAIM % 'stray'}---{CLAIM % 'data-sets'}---"
    assert [one for one in formats.load(beside + PLAIN).warnings if "no job mounts" in one] == [told]
    mounts_none = PLAIN.replace("name: a}", "name: b}").replace("claimName: data-sets", "claimName: another")
    first, second = formats.load_many(f"{beside}{mounts_none}---{PLAIN}")
    assert [one for one in (*first.warnings, *second.warnings) if "no job mounts" in one] == [told]


def test_a_claim_that_the_template_of_no_schedule_or_flow_mounts_is_told() -> None:
    told = "PersistentVolumeClaim stray: ignored: no job mounts it, so it is not created."
    spec = formats.load(f"{CLAIM % 'data-sets'}---{PLAIN}").spec
    schedule = ScheduleSpec.parse({"name": "a", "cron": "0 5 * * *", "job": spec.document() | {"name": "a"}})
    for text in (formats.dump_schedule(schedule), formats.dump_template(spec)):
        load = formats.load_schedule if "CronJob" in text else formats.load_flow
        assert not [one for one in load(text).warnings if "no job mounts" in one]
        assert [one for one in load(f"{CLAIM % 'stray'}---\n{text}").warnings if "no job mounts" in one] == [told]


FILES = """
apiVersion: batch/v1
kind: Job
metadata: {name: a}
spec:
  template:
    spec:
      containers:
      - name: main
        command: [python, train.py]
        workingDir: /code
        volumeMounts: [{name: code, mountPath: /code}, {name: out, mountPath: /code/out}]
      volumes: [{name: code, configMap: {name: m}}, {name: out, emptyDir: {}}]
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: m}, data: {train.py: "1"}}
"""


def test_a_volume_below_the_folder_of_the_files_stays_beside_them():
    spec = formats.load(FILES).spec
    assert (list(spec.files), spec.tasks[0].volume_mounts[0].mount_path) == (["train.py"], "/work/out")


BESIDE_FILES = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: a}
spec:
  volumes: [{mountPath: /workspace/out, volumeClaimName: data-sets}, {mountPath: /data, volumeClaimName: other}]
  tasks:
  - name: main
    template:
      spec:
        containers:
        - command: [python, train.py]
          volumeMounts: [{name: code, mountPath: /workspace}]
        volumes: [{name: code, configMap: {name: m}}]
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: m}, data: {train.py: "1"}}
"""


def test_a_volume_of_the_whole_job_stays_beside_the_files_of_a_template_too() -> None:
    spec = formats.load(BESIDE_FILES).spec
    assert [mount.mount_path for mount in spec.tasks[0].volume_mounts] == ["/work/out", "/data"]


def test_what_is_wrong_with_a_volume_of_the_whole_job_is_told_at_its_place_in_the_manifest() -> None:
    with pytest.raises(Invalid) as raised:
        formats.load(VOLCANO.replace("mountPath: /data", "mountPath: data"))
    assert {problem.path for problem in raised.value.problems} == {"spec.volumes[0].mountPath"}


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("mountPath: /dev/shm", "mountPath: /work", "volumeMounts[0]: ignored: /work is the pod's working folder"),
        ("mountPath: /dev/shm", "mountPath: /", "volumeMounts[0]: ignored: A volume cannot replace"),
        (
            "mountPath: /dev/shm",
            "mountPath: /dev/hugepages",
            "volumeMounts[0]: ignored: /dev/hugepages belongs to",
        ),
        ("mountPath: /dev/shm", "mountPath: /proc/x", "volumeMounts[0]: ignored: /proc/x belongs to the system"),
        ("medium: Memory", "medium: HugePages", "volumes[0]: ignored: an emptyDir is on disk or in memory"),
        ("medium: Memory", "medium: HugePages-2Mi", "volumes[0]: ignored: an emptyDir is on disk or in memory"),
    ],
)
def test_a_volume_that_cannot_be_had_is_left_out_and_told(old: str, new: str, told: str) -> None:
    loaded = formats.load(PLAIN.replace(old, new))
    assert loaded.spec.document()["volumes"] == [DATA]
    assert [mount.name for mount in loaded.spec.tasks[0].volume_mounts] == ["data"]
    assert len([warning for warning in loaded.warnings if told in warning]) == 1


def test_a_claim_of_which_a_folder_by_variables_is_asked_for_is_not_mounted_as_a_whole() -> None:
    loaded = formats.load(PLAIN.replace("subPath: imagenet", "subPathExpr: $(NAME)"))
    assert [mount.name for mount in loaded.spec.tasks[0].volume_mounts] == ["shm"]
    (told,) = [told for told in loaded.warnings if "volumeMounts[1]" in told]
    assert "paths with variables are not supported" in told


@pytest.mark.parametrize("size", ["0", "0Gi"])
def test_a_size_of_zero_is_no_limit_as_in_kubernetes(size: str) -> None:
    loaded = formats.load(PLAIN.replace("8Gi", size))
    assert loaded.spec.document()["volumes"][1] == {"name": "shm", "empty_dir": {"medium": "Memory"}}
    assert [warning for warning in loaded.warnings if "sizeLimit: ignored: zero means no limit" in warning]


@pytest.mark.parametrize("source", ["emptyDir: {}", "persistentVolumeClaim: {claimName: data-sets}"])
@pytest.mark.parametrize(
    ("code", "working_dir", "out"), [("/workspace", "", "/workspace/"), ("/workspace/code", "/workspace", "/workspace")]
)
def test_a_volume_at_the_folder_that_the_pod_works_in_is_left_out_and_told(code, working_dir, out, source) -> None:
    text = FILES.replace("mountPath: /code/out", f"mountPath: {out}").replace(
        "mountPath: /code}", f"mountPath: {code}}}"
    )
    text = text.replace("workingDir: /code", f"workingDir: '{working_dir}'").replace("emptyDir: {}", source)
    loaded = formats.load(text)
    assert (loaded.spec.volumes, loaded.spec.tasks[0].volume_mounts) == ((), ())
    (told,) = [warning for warning in loaded.warnings if "volumeMounts[1]: ignored" in warning]
    assert f"{out} is the pod's working folder" in told


def test_a_volume_in_which_a_file_of_the_template_lies_is_left_out_and_told() -> None:
    loaded = formats.load(FILES.replace("mountPath: /code}", "mountPath: /code/out/conf}"))
    assert (list(loaded.spec.files), loaded.spec.volumes) == (["out/conf/train.py"], ())
    (told,) = [told for told in loaded.warnings if "volumeMounts[1]: ignored" in told]
    assert "The job's file out/conf/train.py is there." in told


def test_of_two_volumes_at_one_path_that_of_the_template_is_mounted_and_the_other_told_once() -> None:
    both = BESIDE_FILES.replace("configMap: {name: m}", "emptyDir: {}").replace("/workspace/out", "/workspace/")
    loaded = formats.load(both)
    assert [mount.name for mount in loaded.spec.tasks[0].volume_mounts] == ["code", "other"]
    (told,) = [warning for warning in loaded.warnings if "Another volume" in warning]
    assert told == "spec.volumes[0]: ignored: Another volume of the task is mounted at /workspace/."
    tasks = VOLCANO.replace("mountPath: /data", "mountPath: /work")
    assert len([warning for warning in formats.load(tasks).warnings if "spec.volumes[0]" in warning]) == 1


def test_volumes_beyond_as_many_as_a_job_may_have_are_left_out_and_told() -> None:
    many = "".join(f"\n  - {{mountPath: /v{number}, volumeClaimName: v{number}}}" for number in range(33))
    loaded = formats.load(VOLCANO.replace("volumes:", f"volumes:{many}"))
    assert len(loaded.spec.volumes) == len(loaded.spec.tasks[1].volume_mounts) == 32
    assert [warning for warning in loaded.warnings if "spec.volumes[32]: ignored" in warning]


JOB = JobSpec.parse(
    {
        "name": "a",
        "files": {"train.py": "1"},
        "volumes": [{"name": "files", "volume_claim": {"storage": "5Gi", "access_modes": ["ReadWriteMany"]}}, DATA],
        "tasks": [
            {
                "name": "main",
                "command": ["run"],
                "volume_mounts": [
                    {"name": "files", "mount_path": "/work/out"},
                    {"name": "data", "mount_path": "/workspace"},
                ],
            }
        ],
    }
)


@pytest.mark.parametrize("word", ["volcano", "job"])
def test_a_claim_made_for_the_job_is_written_beside_it_and_comes_back_as_such(word):
    written = formats.write(JOB, FORM[word])
    assert "name: a-files" in written.text
    assert "kind: PersistentVolumeClaim" in written.text
    assert formats.load(written.text).spec.volumes == JOB.volumes
    assert formats.load(written.text).spec.tasks[0].volume_mounts == JOB.tasks[0].volume_mounts


def test_a_claim_that_somebody_else_keeps_is_not_made_here_and_is_mounted_by_its_name():
    claim = "{kind: PersistentVolumeClaim, metadata: {name: data-sets}, spec: {resources: {requests: {storage: 1}}}}"
    (loaded,) = formats.load_many(f"{claim}\n---{PLAIN}")
    assert loaded.spec.volumes[0].volume_claim_name == "data-sets"
    assert [told for told in loaded.warnings if "PersistentVolumeClaim data-sets: ignored: create it in" in told]


@pytest.mark.parametrize(
    ("old", "new", "path", "sentence"),
    [
        ("mountPath: /data", "mountPath: data", "volumeMounts[1].mountPath", "an absolute path"),
        ("sizeLimit: 8Gi", "sizeLimit: lots", "volumes[0]", "is not an amount"),
        ("claimName: data-sets", "claimName: Data_Sets", "volumes[1]", "name for a Kubernetes object"),
    ],
)
def test_what_is_wrong_with_a_volume_is_told_at_its_place_in_the_manifest(old, new, path, sentence):
    with pytest.raises(Invalid) as raised:
        formats.load(PLAIN.replace(old, new))
    (problem,) = raised.value.problems
    assert path in problem.path
    assert sentence in problem.message
