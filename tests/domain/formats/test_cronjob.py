"""Reading and writing Volcano CronJobs."""

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.domain.specs import SPECS
from tests.support.examples import examples

from hekla.domain import formats
from hekla.domain.errors import Invalid
from hekla.domain.jobspec import JobSpec
from hekla.domain.schedules import Concurrency, ScheduleSpec

MANIFEST = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: CronJob
metadata:
  name: nightly
  namespace: research
spec:
  schedule: "30 2 * * mon-fri"
  timeZone: Europe/Berlin
  concurrencyPolicy: Forbid
  startingDeadlineSeconds: 600
  failedJobsHistoryLimit: 2
  jobTemplate:
    metadata:
      annotations: {hekla.io/priority: "5"}
    spec:
      queue: vision
      schedulerName: volcano
      tasks:
        - name: main
          replicas: 2
          template:
            spec:
              containers: [{command: [python, train.py], workingDir: /w, volumeMounts: [{name: f, mountPath: /w}]}]
              volumes: [{name: f, configMap: {name: files}}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: files}
data: {train.py: "print(1)"}
"""


def test_manifest_is_read() -> None:
    loaded = formats.load_schedule(MANIFEST)
    spec = loaded.spec
    assert (spec.name, spec.cron, spec.time_zone) == ("nightly", "30 2 * * mon-fri", "Europe/Berlin")
    assert (spec.concurrency, spec.starting_deadline_seconds) == (Concurrency.FORBID, 600)
    assert (spec.successful_jobs_history_limit, spec.failed_jobs_history_limit, spec.suspended) == (3, 2, False)
    assert (spec.job.queue, spec.job.priority, spec.job.files) == ("vision", 5, {"train.py": "print(1)"})
    assert [warning.partition(":")[0] for warning in loaded.warnings] == ["metadata.namespace"]


def test_problems_have_their_path_in_the_manifest() -> None:
    text = MANIFEST.replace("mon-fri", "fri-mon").replace("replicas: 2", "replicas: -2").replace("Forbid", "Never")
    with pytest.raises(Invalid) as raised:
        formats.load_schedule(text)
    assert {problem.path for problem in raised.value.problems} == {
        "spec.schedule", "spec.concurrencyPolicy", "spec.jobTemplate.spec.tasks[0].replicas",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "path", "message"),
    [
        ("kind: Job\napiVersion: batch.volcano.sh/v1alpha1\n", "", "no CronJob"),
        (MANIFEST + "---\n" + MANIFEST, "", "2 CronJob"),
        (MANIFEST.replace("batch.volcano.sh/v1alpha1", "batch/v1"), "apiVersion", "must be batch.volcano.sh"),
        (MANIFEST.replace("  schedule:", "  shedule:"), "spec.shedule", "Did you mean “schedule”"),
        ("- 1\n", "", "no CronJob"),
    ],
)
def test_other_manifests_are_refused(text: str, path: str, message: str) -> None:
    with pytest.raises(Invalid) as raised:
        formats.load_schedule(text)
    assert any(problem.path == path and message in problem.message for problem in raised.value.problems)


def test_written_manifest_is_a_cronjob() -> None:
    _config_map, manifest = yaml.safe_load_all(formats.dump_schedule(formats.load_schedule(MANIFEST).spec))
    assert (manifest["apiVersion"], manifest["kind"]) == ("batch.volcano.sh/v1alpha1", "CronJob")
    assert manifest["spec"]["schedule"] == "30 2 * * mon-fri"
    assert "name" not in manifest["spec"]["jobTemplate"].get("metadata", {})


@settings(max_examples=examples(100), deadline=None)
@given(
    SPECS,
    st.fixed_dictionaries(
        {"cron": st.sampled_from(["@daily", "*/5 * * * *", "0 0 1 jan ?"])},
        optional={
            "time_zone": st.sampled_from(["Asia/Shanghai", "America/New_York"]),
            "concurrency": st.sampled_from(["Forbid", "Replace"]),
            "starting_deadline_seconds": st.integers(1, 10_000),
            "suspended": st.booleans(),
            "successful_jobs_history_limit": st.integers(0, 9),
            "failed_jobs_history_limit": st.integers(0, 9),
        },
    ),
)
def test_round_trip(job: JobSpec, more: dict[str, object]) -> None:
    spec = ScheduleSpec.parse({**more, "name": "nightly", "job": job.document()})
    loaded = formats.load_schedule(formats.dump_schedule(spec))
    assert loaded.spec == spec


def test_name_is_generated_from_its_beginning() -> None:
    text = MANIFEST.replace("name: nightly", "generateName: nightly-")
    names = {formats.load_schedule(text).spec.name for _ in range(2)}
    assert len(names) == 2
    assert all(name.startswith("nightly-") and len(name) == len("nightly-") + 5 for name in names)
