"""Volcano CronJobs (`batch.volcano.sh/v1alpha1`): a schedule, with a Volcano Job as its template."""

from dataclasses import dataclass
from typing import Any

from hekla.domain import yaml_text
from hekla.domain.errors import Invalid, Problem
from hekla.domain.formats.fields import Fields, Findings, not_one, wrong_version
from hekla.domain.formats.files import Companions, is_companion, report_unmounted
from hekla.domain.formats.reader import ManifestReader, without_none
from hekla.domain.formats.volcano import VOLCANO
from hekla.domain.formats.writing import companions, without_empty
from hekla.domain.schedules import MAX_NAME, ScheduleSpec
from hekla.domain.translation import translate
from hekla.domain.validation import quote

API_VERSION, KIND = "batch.volcano.sh/v1alpha1", "CronJob"
_FIELDS = {
    "schedule": "cron",
    "timeZone": "time_zone",
    "concurrencyPolicy": "concurrency",
    "startingDeadlineSeconds": "starting_deadline_seconds",
    "suspend": "suspended",
    "successfulJobsHistoryLimit": "successful_jobs_history_limit",
    "failedJobsHistoryLimit": "failed_jobs_history_limit",
}


@dataclass(frozen=True, slots=True)
class LoadedSchedule:
    """The schedule in a manifest, and a sentence for everything in it that has no effect here."""

    spec: ScheduleSpec
    warnings: tuple[str, ...]


def is_schedule(document: object) -> bool:
    """Whether a document of a stream is a CronJob."""
    return isinstance(document, dict) and document.get("kind") == KIND


def load_schedule(text: str | bytes) -> LoadedSchedule:
    """The schedule in a YAML (or JSON) stream. Raises Invalid with every problem and its path in the manifest."""
    findings = Findings()
    documents = yaml_text.read(text)
    manifest, beside = _sorted_out(documents, findings)
    reading = ManifestReader(beside, findings)
    document = _read(reading, manifest)
    manifest.close()
    report_unmounted(documents, reading.volumes.mounted_claims(), findings)
    findings.origins["job.files"] = "data"
    try:
        mounted = {"files": beside.files, "volumes": reading.volumes.documents()}
        spec = ScheduleSpec.parse(without_none({**document, "job": {**document["job"], **mounted}}))
    except Invalid as error:
        findings.raise_any(error)
        raise
    findings.raise_any()
    for remark in spec.job.placed_remarks():
        findings.remark(f"job.{remark.path}", remark.message)
    return LoadedSchedule(spec, findings.warnings())


def dump_schedule(spec: ScheduleSpec) -> str:
    """The schedule as a CronJob, with the ConfigMap and the claims of its job."""
    job = spec.job.model_copy(update={"name": spec.name})
    template = VOLCANO.write(job)
    template["metadata"].pop("name")
    values = spec.document()
    manifest = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": spec.name},
        "spec": {
            **{name: values[field] for name, field in _FIELDS.items() if field in values},
            "jobTemplate": without_empty(**template),
        },
    }
    return yaml_text.write([*companions(job), manifest])


def _read(reading: ManifestReader, manifest: Fields) -> dict[str, Any]:
    manifest.ignore("apiVersion", "kind", "status")
    metadata, spec = manifest.fields("metadata"), manifest.fields("spec")
    document = {
        "name": reading.name(metadata, MAX_NAME),
        **{field: reading.take(spec, name, field) for name, field in _FIELDS.items()},
    }
    reading.close_metadata(metadata, metadata.mapping("annotations"))
    document["job"] = _template(reading, spec.fields("jobTemplate"))
    spec.close()
    return document


def _template(reading: ManifestReader, template: Fields) -> dict[str, Any]:
    """The job's document. The origins of its fields get the prefix `job`."""
    known = dict(reading.findings.origins)
    reading.findings.origins.clear()
    document = {name: value for name, value in VOLCANO.read(reading, template).items() if name != "name"}
    template.close()
    inner = {f"job.{path}": origin for path, origin in reading.findings.origins.items()}
    reading.findings.origins.clear()
    reading.findings.origins.update({**known, "job": template.path, **inner})
    return without_none(document)


def _sorted_out(documents: list[Any], findings: Findings) -> tuple[Fields, Companions]:
    """The only CronJob of a stream, and what its pods mount. Raises Invalid without exactly one."""
    found, maps = [], Companions(findings)
    for number, document in enumerate(documents, start=1):
        if is_companion(document):
            maps.add(document)
        elif is_schedule(document):
            found.append(document)
        else:
            kind = document.get("kind") if isinstance(document, dict) else document
            findings.not_honoured(f"document {number}", translate("{kind} is not a CronJob.", kind=quote(kind)))
    if len(found) != 1:
        raise Invalid([Problem("", not_one(len(found), KIND, API_VERSION))])
    if found[0].get("apiVersion") != API_VERSION:
        raise Invalid([Problem("apiVersion", wrong_version(KIND, API_VERSION, found[0].get("apiVersion")))])
    return Fields(found[0], "", findings), maps
