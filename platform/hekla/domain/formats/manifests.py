"""Reads and writes one YAML (or JSON) stream: a job of any kind, with the ConfigMaps and claims that its pods mount.

A PodGroup next to the job says how its pods are placed (`podgroup`).

A file that is mounted into the container's working folder (or below it) becomes a file of the JobSpec. To find what a
kind of manifest cannot hold, the written manifest is read back. Every difference is reported, so none can be forgotten
here.
"""

import json
from dataclasses import dataclass, replace
from typing import Any

from hekla.domain import yaml_text
from hekla.domain.errors import Invalid, Problem
from hekla.domain.formats import podgroup, registry
from hekla.domain.formats.base import Format, LoadedJob
from hekla.domain.formats.cronjob import is_schedule
from hekla.domain.formats.fields import Fields, Findings, wrong_version
from hekla.domain.formats.files import Companions, is_companion, report_unmounted
from hekla.domain.formats.queue_manifest import holds_queues
from hekla.domain.formats.reader import ManifestReader, without_none
from hekla.domain.formats.unsupported_fields import unsupported_fields
from hekla.domain.formats.volcano import VOLCANO
from hekla.domain.formats.writing import companions
from hekla.domain.jobspec import JobSpec
from hekla.domain.sweeps import MAX_JOBS, MAX_PROBLEMS
from hekla.domain.translation import gettext_noop, translate
from hekla.domain.validation import join, quote

_WHERE_QUEUES = gettext_noop(
    "operators and platform admins create queues from a separate text, with `hekla job submit` or at /api/v1/queues."
)
_MOST_UNWRITTEN = 100_000
FLOW_KINDS = ("JobTemplate", "JobFlow")
_NOT_A_JOB = gettext_noop(
    "The text has a {kind}, which is not a job. Start flows and save templates on the page Flows, with `hekla job "
    "submit`, or at /api/v1/flows and /api/v1/templates."
)


@dataclass(frozen=True, slots=True)
class DumpedManifest:
    """A manifest as YAML, and a sentence for everything in the job that it does not hold."""

    text: str
    notes: tuple[str, ...]


def load(text: str | bytes, *, seed: str = "") -> LoadedJob:
    """The job in a YAML (or JSON) stream. Raises Invalid with every problem and its path in the manifest.

    With a `seed`, `generateName` gives the same name each time.
    """
    return load_documents(yaml_text.read(text), seed=seed)


def load_documents(documents: list[Any], *, seed: str = "", findings: Findings | None = None) -> LoadedJob:
    """The job in the documents of a stream, or in a single JobSpec document. `findings`: to read them afterwards.

    Raises Invalid as `load` does.
    """
    loaded = load_beside(documents, seed=seed, findings=findings)
    return replace(loaded, warnings=(*loaded.warnings, *_unmounted(documents, loaded.mounted)))


def load_beside(documents: list[Any], *, seed: str = "", findings: Findings | None = None) -> LoadedJob:
    """As `load_documents`, but unmounted claims may belong to other jobs and give no warning. Raises Invalid as `load`
    does.
    """
    if is_spec(documents):
        return _load_spec(documents[0])
    findings = Findings() if findings is None else findings
    job, groups, beside = _sorted_out(documents, findings)
    form, group = _format_of(job), podgroup.select_group(job, groups, findings)
    job = podgroup.without_name(job, group) if group else job
    reading, manifest = ManifestReader(beside, findings, seed), Fields(job, "", findings)
    if not form.recognise:
        manifest.ignore("apiVersion", "kind", "status")
    document = form.read(reading, manifest)
    manifest.close()
    if group:
        group.apply(reading, document)
    findings.origins["files"] = "data"
    try:
        spec = JobSpec.parse(without_none({**document, "files": beside.files, "volumes": reading.volumes.documents()}))
    except Invalid as error:
        findings.raise_any(error)
        raise
    findings.raise_any()
    for remark in spec.placed_remarks():
        findings.remark(remark.path, remark.message)
    return LoadedJob(spec, findings.warnings(), reading.secrets, reading.volumes.mounted_claims())


def load_many(text: str | bytes) -> tuple[LoadedJob, ...]:
    """Every job in a YAML (or JSON) stream, in order: manifests of any kind, and JobSpec documents.

    ConfigMaps and claims serve all jobs of the stream, PodGroups the jobs whose pods name them. Raises Invalid with
    every problem and its path, for example `document 3.spec`.
    """
    documents = yaml_text.read(text)
    maps = [one for one in documents if is_companion(one)]
    numbered = [(number, one) for number, one in enumerate(documents, start=1) if not is_companion(one)]
    jobs = [(number, one) for number, one in numbered if not podgroup.is_group(one)]
    groups = [one for _, one in numbered if podgroup.is_group(one)]
    if groups and not jobs:
        raise _refusal(podgroup.no_job_message())
    if not 0 < len(jobs) <= MAX_JOBS:
        raise _refusal(
            translate("The text has {count:,} jobs. Allowed: 1 to {most:,}.", count=len(jobs), most=MAX_JOBS)
        )
    alone = len(jobs) == 1 and not _is_spec(jobs[0][1])
    found, problems = [], [] if alone else _strays(numbered, [one for _, one in jobs])
    for number, document in jobs:
        theirs = groups if alone else podgroup.groups_of(document, groups)
        try:
            found.append(_load_one(document, [*maps, *theirs]))
        except Invalid as error:
            problems += [Problem(join(f"document {number}", each.path), each.message) for each in error.problems]
    if problems:
        raise Invalid(problems[:MAX_PROBLEMS])
    unmounted = _unmounted(maps, frozenset[str]().union(*(one.mounted for one in found)))
    return (replace(found[0], warnings=(*found[0].warnings, *unmounted)), *found[1:])


def load_among(document: Any, others: list[Any]) -> LoadedJob:  # noqa: ANN401  (whatever the YAML holds)
    """The job in one document of a stream, with what the other documents give it. Raises Invalid as `load` does."""
    maps = [one for one in others if is_companion(one)]
    groups = podgroup.groups_of(document, [one for one in others if podgroup.is_group(one)])
    return _load_one(document, [*maps, *groups])


def kind_of(document: object) -> str:
    """What a document creates when it is submitted: Job, CronJob or Queue; empty for all others."""
    if not isinstance(document, dict):
        return ""
    if is_schedule(document) or holds_queues([document]):
        return str(document["kind"])
    known = _is_spec(document) or registry.recognise(document) or registry.formats_of_kind(document.get("kind"))
    return "Job" if known else ""


def is_beside(document: object) -> bool:
    """Whether a document only serves the jobs of a stream: a ConfigMap, a claim or a PodGroup."""
    return is_companion(document) or podgroup.is_group(document)


def _unmounted(documents: list[Any], mounted: frozenset[str]) -> tuple[str, ...]:
    findings = Findings()
    report_unmounted(documents, mounted, findings)
    return findings.warnings()


def _strays(numbered: list[tuple[int, Any]], jobs: list[Any]) -> list[Problem]:
    """The problem of each PodGroup that no job names."""
    return [
        Problem(f"document {number}", podgroup.no_pod_message())
        for number, one in numbered
        if podgroup.is_group(one) and not podgroup.groups_of(jobs, [one])
    ]


def _load_one(document: Any, beside: list[Any]) -> LoadedJob:  # noqa: ANN401  (whatever the YAML holds)
    return _load_spec(document) if _is_spec(document) else load_beside([*beside, document])


def _load_spec(document: dict[str, Any]) -> LoadedJob:
    spec = JobSpec.parse(document)
    return LoadedJob(spec, spec.remarks)


def is_spec(documents: list[Any]) -> bool:
    """Whether the stream is a single JobSpec document."""
    return len(documents) == 1 and _is_spec(documents[0])


def _is_spec(document: Any) -> bool:  # noqa: ANN401  (whatever the YAML holds)
    return isinstance(document, dict) and "tasks" in document and "apiVersion" not in document


def write(spec: JobSpec, form: Format = VOLCANO) -> DumpedManifest:
    """The job as a manifest of that kind. Raises Invalid if the kind cannot hold the job at all."""
    text = _text(spec, form)
    return DumpedManifest(text, unsupported_fields(spec, load(text).spec, form.kind))


def losses(spec: JobSpec, form: Format) -> tuple[str, ...]:
    """The notes of `write`. Without writing and reading YAML, which takes most of its time, unless the job is large.

    Raises Invalid if the kind cannot hold the job at all.
    """
    text = json.dumps(documents(spec, form))
    if len(text) > _MOST_UNWRITTEN:  # the text as YAML may be too large to be read
        return write(spec, form).notes
    return unsupported_fields(spec, load_documents(json.loads(text)).spec, form.kind)


def dump(spec: JobSpec) -> str:
    """The job as a Volcano Job, which holds every job completely, except annotations that no format reads."""
    return _text(spec, VOLCANO)


def dump_whole(spec: JobSpec) -> str:
    """The job as a Volcano Job; as a JobSpec document if a Volcano Job would lose something, such as annotations."""
    try:
        written = write(spec)
    except Invalid:
        return yaml_text.write([spec.document()])
    return yaml_text.write([spec.document()]) if written.notes else written.text


def documents(spec: JobSpec, form: Format = VOLCANO) -> list[dict[str, Any]]:
    """The job as the documents of a stream: its files and claims, if it has any, then the job."""
    head = {} if form.recognise else {"apiVersion": form.api_version, "kind": form.kind}
    job = {**head, **form.write(spec)}
    return [*(companions(spec) if form.mounts_files else []), job]


def _text(spec: JobSpec, form: Format) -> str:
    return yaml_text.write(documents(spec, form))


def _sorted_out(documents: list[Any], findings: Findings) -> tuple[Any, list[Any], Companions]:
    """The only job of a stream, its PodGroups, and what its pods mount. Raises Invalid without exactly one job."""
    jobs, groups, maps = [], [], Companions(findings)
    for number, document in enumerate(documents, start=1):
        if not isinstance(document, dict):
            raise _refusal(
                translate(
                    "Document {number} must be a mapping that begins with apiVersion, not {given}.",
                    number=number,
                    given=quote(document),
                )
            )
        if is_companion(document):
            maps.add(document)
        elif podgroup.is_group(document):
            groups.append(document)
        elif "kind" not in document or registry.recognise(document) or registry.formats_of_kind(document["kind"]):
            jobs.append(document)
        elif document["kind"] in FLOW_KINDS:
            raise _refusal(translate(_NOT_A_JOB, kind=document["kind"]))
        elif holds_queues([document]):
            findings.not_honoured(f"document {number}", translate(_WHERE_QUEUES))
        else:
            message = translate("a {kind} cannot be submitted.", kind=quote(document["kind"]))
            findings.not_honoured(f"document {number}", message)
    if holds_queues(documents):
        raise _refusal(translate("The text has a Queue, which is not a job: {where}", where=translate(_WHERE_QUEUES)))
    if groups and not jobs:
        raise _refusal(podgroup.no_job_message())
    if len(jobs) != 1:
        raise _refusal(_not_one(len(jobs)))
    return jobs[0], groups, maps


def _not_one(jobs: int) -> str:
    if not jobs:
        return translate("The text has no job. Exactly one is required: {kinds}.", kinds=_kinds())
    return translate("The text has {count} jobs. Exactly one is required: {kinds}.", count=jobs, kinds=_kinds())


def _format_of(job: dict[str, Any]) -> Format:
    if form := registry.recognise(job):
        return form
    version, kind = job.get("apiVersion"), job.get("kind")
    form = registry.find(version, kind)
    if form is None and kind is None:
        raise Invalid([Problem("kind", translate("Required. Supported formats: {kinds}.", kinds=_kinds()))])
    if form is None:
        versions = translate(" or ").join(other.api_version for other in registry.formats_of_kind(kind))
        raise Invalid([Problem("apiVersion", wrong_version(str(kind), versions, version))])
    return form


def _kinds() -> str:
    return ", ".join(
        translate("{kind} of {version}", kind=form.kind, version=form.api_version) for form in registry.FORMATS
    )


def _refusal(message: str) -> Invalid:
    return Invalid([Problem("", message)])
