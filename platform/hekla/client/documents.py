"""What REST tells of a job, as far as programs usually look; the OpenAPI document at /api/v1/schema has all of it."""

from typing import Any, TypedDict


class PodDocument(TypedDict):
    """The last attempt of a replica."""

    task: str
    index: int
    attempt: int
    phase: str
    node: str
    reason: str
    message: str
    exit_code: int | None
    started_at: str | None
    finished_at: str | None


class JobDocument(TypedDict):
    """A job in a list. Instants are as in ISO 8601."""

    uid: str
    name: str
    tenant: str
    queue: str
    cluster: str
    owner: str
    kind: str
    priority: int
    replicas: int
    phase: str
    revision: int
    reason: str
    message: str
    submitted_at: str
    started_at: str | None
    finished_at: str | None


class JobDetail(JobDocument):
    """One job. `spec`: what was asked for; `waiting`: why it waits, each with a sentence.

    `placement`: why it is in this one of several clusters; None where it named its queue itself.
    """

    spec: dict[str, Any]
    waiting: list[dict[str, Any]]
    pods: list[PodDocument]
    placement: dict[str, Any] | None


class SubmitResult(TypedDict):
    """A job that was taken in, and what of its manifest has no effect."""

    job: JobDetail
    warnings: list[str]


class DryRunResult(TypedDict):
    """A job as it would be taken in."""

    spec: dict[str, Any]
    warnings: list[str]
