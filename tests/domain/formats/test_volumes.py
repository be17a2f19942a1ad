"""Reading and writing volumes in manifests."""

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
def test_volumes_of_pod_templates_are_volumes_of_the_job(text):
    loaded = formats.load(text)
    document = loaded.spec.document()
    assert document["volumes"] == [DATA, SHM]
    assert all(task["volume_mounts"] == MOUNTS for task in document["tasks"])
    assert not [message for message in loaded.warnings if "olume" in message]


def test_read_only_claim_has_read_only_mounts():
    text = PLAIN.replace(", readOnly: true", "").replace("claimName: data-sets", "claimName: data-sets, readOnly: true")
    assert formats.load(text).spec.document()["tasks"][0]["volume_mounts"] == MOUNTS


def test_volumes_of_a_volcano_job_are_mounted_by_all_tasks():
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


def test_different_volumes_with_one_name_stay_separate():
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


def test_equal_claims_stay_separate() -> None:
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
def test_claim_without_a_class_gets_the_default_class_with_a_warning(text: str, path: str) -> None:
    loaded = formats.load(text)
    assert [claim.storage_class for volume in loaded.spec.volumes if (claim := volume.volume_claim)] == [""]
    assert [message for message in loaded.warnings if f"{path}.storageClassName: ignored: claims without" in message]
    assert "storageClassName" not in formats.dump(loaded.spec)


def test_unmounted_claim_of_a_job_is_reported() -> None:
    message = "PersistentVolumeClaim stray: ignored: no job mounts it, so it is not created."
    beside = f"{CLAIM % 'stray'}---{CLAIM % 'data-sets'}---"
    assert [one for one in formats.load(beside + PLAIN).warnings if "no job mounts" in one] == [message]
    mounts_none = PLAIN.replace("name: a}", "name: b}").replace("claimName: data-sets", "claimName: another")
    first, second = formats.load_many(f"{beside}{mounts_none}---{PLAIN}")
    assert [one for one in (*first.warnings, *second.warnings) if "no job mounts" in one] == [message]


def test_unmounted_claim_of_a_schedule_or_flow_is_reported() -> None:
    message = "PersistentVolumeClaim stray: ignored: no job mounts it, so it is not created."
    spec = formats.load(f"{CLAIM % 'data-sets'}---{PLAIN}").spec
    schedule = ScheduleSpec.parse({"name": "a", "cron": "0 5 * * *", "job": spec.document() | {"name": "a"}})
    for text in (formats.dump_schedule(schedule), formats.dump_template(spec)):
        load = formats.load_schedule if "CronJob" in text else formats.load_flow
        assert not [one for one in load(text).warnings if "no job mounts" in one]
        assert [one for one in load(f"{CLAIM % 'stray'}---\n{text}").warnings if "no job mounts" in one] == [message]


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


def test_volume_below_the_files_is_preserved():
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


def test_volume_of_the_job_below_the_files_is_preserved() -> None:
    spec = formats.load(BESIDE_FILES).spec
    assert [mount.mount_path for mount in spec.tasks[0].volume_mounts] == ["/work/out", "/data"]


def test_problem_of_a_job_volume_has_its_path() -> None:
    with pytest.raises(Invalid) as raised:
        formats.load(VOLCANO.replace("mountPath: /data", "mountPath: data"))
    assert {problem.path for problem in raised.value.problems} == {"spec.volumes[0].mountPath"}


@pytest.mark.parametrize(
    ("old", "new", "message"),
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
def test_unsupported_volume_is_ignored_with_a_warning(old: str, new: str, message: str) -> None:
    loaded = formats.load(PLAIN.replace(old, new))
    assert loaded.spec.document()["volumes"] == [DATA]
    assert [mount.name for mount in loaded.spec.tasks[0].volume_mounts] == ["data"]
    assert len([warning for warning in loaded.warnings if message in warning]) == 1


def test_mount_with_sub_path_expression_is_ignored() -> None:
    loaded = formats.load(PLAIN.replace("subPath: imagenet", "subPathExpr: $(NAME)"))
    assert [mount.name for mount in loaded.spec.tasks[0].volume_mounts] == ["shm"]
    (message,) = [message for message in loaded.warnings if "volumeMounts[1]" in message]
    assert "paths with variables are not supported" in message


@pytest.mark.parametrize("size", ["0", "0Gi"])
def test_size_limit_of_zero_is_no_limit(size: str) -> None:
    loaded = formats.load(PLAIN.replace("8Gi", size))
    assert loaded.spec.document()["volumes"][1] == {"name": "shm", "empty_dir": {"medium": "Memory"}}
    assert [warning for warning in loaded.warnings if "sizeLimit: ignored: zero means no limit" in warning]


@pytest.mark.parametrize("source", ["emptyDir: {}", "persistentVolumeClaim: {claimName: data-sets}"])
@pytest.mark.parametrize(
    ("code", "working_dir", "out"), [("/workspace", "", "/workspace/"), ("/workspace/code", "/workspace", "/workspace")]
)
def test_volume_at_the_working_folder_is_ignored_with_a_warning(code, working_dir, out, source) -> None:
    text = FILES.replace("mountPath: /code/out", f"mountPath: {out}").replace(
        "mountPath: /code}", f"mountPath: {code}}}"
    )
    text = text.replace("workingDir: /code", f"workingDir: '{working_dir}'").replace("emptyDir: {}", source)
    loaded = formats.load(text)
    assert (loaded.spec.volumes, loaded.spec.tasks[0].volume_mounts) == ((), ())
    (message,) = [warning for warning in loaded.warnings if "volumeMounts[1]: ignored" in warning]
    assert f"{out} is the pod's working folder" in message


def test_volume_over_a_file_is_ignored_with_a_warning() -> None:
    loaded = formats.load(FILES.replace("mountPath: /code}", "mountPath: /code/out/conf}"))
    assert (list(loaded.spec.files), loaded.spec.volumes) == (["out/conf/train.py"], ())
    (message,) = [message for message in loaded.warnings if "volumeMounts[1]: ignored" in message]
    assert "The job's file out/conf/train.py is there." in message


def test_template_volume_takes_precedence_at_one_path() -> None:
    both = BESIDE_FILES.replace("configMap: {name: m}", "emptyDir: {}").replace("/workspace/out", "/workspace/")
    loaded = formats.load(both)
    assert [mount.name for mount in loaded.spec.tasks[0].volume_mounts] == ["code", "other"]
    (message,) = [warning for warning in loaded.warnings if "Another volume" in warning]
    assert message == "spec.volumes[0]: ignored: Another volume of the task is mounted at /workspace/."
    tasks = VOLCANO.replace("mountPath: /data", "mountPath: /work")
    assert len([warning for warning in formats.load(tasks).warnings if "spec.volumes[0]" in warning]) == 1


def test_volumes_beyond_the_limit_are_ignored_with_a_warning() -> None:
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
def test_claim_of_the_job_survives_a_round_trip(word):
    written = formats.write(JOB, FORM[word])
    assert "name: a-files" in written.text
    assert "kind: PersistentVolumeClaim" in written.text
    assert formats.load(written.text).spec.volumes == JOB.volumes
    assert formats.load(written.text).spec.tasks[0].volume_mounts == JOB.tasks[0].volume_mounts


def test_claim_without_the_annotation_is_mounted_by_name():
    claim = "{kind: PersistentVolumeClaim, metadata: {name: data-sets}, spec: {resources: {requests: {storage: 1}}}}"
    (loaded,) = formats.load_many(f"{claim}\n---{PLAIN}")
    assert loaded.spec.volumes[0].volume_claim_name == "data-sets"
    assert [
        message for message in loaded.warnings if "PersistentVolumeClaim data-sets: ignored: create it in" in message
    ]


@pytest.mark.parametrize(
    ("old", "new", "path", "sentence"),
    [
        ("mountPath: /data", "mountPath: data", "volumeMounts[1].mountPath", "an absolute path"),
        ("sizeLimit: 8Gi", "sizeLimit: lots", "volumes[0]", "is not an amount"),
        ("claimName: data-sets", "claimName: Data_Sets", "volumes[1]", "name for a Kubernetes object"),
    ],
)
def test_problem_of_a_volume_has_its_path(old, new, path, sentence):
    with pytest.raises(Invalid) as raised:
        formats.load(PLAIN.replace(old, new))
    (problem,) = raised.value.problems
    assert path in problem.path
    assert sentence in problem.message
