"""Types of the REST documents of jobs, with the common fields. The OpenAPI document at /api/v1/schema has them all."""

from typing import Any, TypedDict


class PodDocument(TypedDict):
    """The last attempt of a replica."""

    task: str
    index: int
    attempt: int
    phase: str
    node: str
    cards: list[dict[str, Any]]
    cpus: str
    reason: str
    message: str
    exit_code: int | None
    started_at: str | None
    finished_at: str | None


class JobDocument(TypedDict):
    """A job in a list. Times are in ISO 8601."""

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
    """One job. `spec`: the requested spec; `waiting`: why it is pending, each reason with a sentence; `notice`: why
    nothing new may start in its cluster, or empty.

    `placement`: why it is on this cluster of a federated queue; None if it was submitted to a queue directly.
    """

    spec: dict[str, Any]
    waiting: list[dict[str, Any]]
    pods: list[PodDocument]
    notice: str
    placement: dict[str, Any] | None


class SubmitResult(TypedDict):
    """A submitted or scaled job, and warnings, for example about fields without effect."""

    job: JobDetail
    warnings: list[str]


class DryRunResult(TypedDict):
    """A job as it would be submitted."""

    spec: dict[str, Any]
    warnings: list[str]
