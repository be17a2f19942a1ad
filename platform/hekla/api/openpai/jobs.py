"""OpenPAI's views to submit, list, read, start, stop and tag jobs."""

import json
from http import HTTPStatus
from typing import Any

from django.db.models import F, Q, QuerySet
from django.db.models.expressions import OrderBy
from django.http import HttpResponse
from django.utils.translation import gettext as _
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.openpai import descriptions, states
from hekla.api.openpai.errors import OpenpaiError, wrong_parameter
from hekla.api.openpai.views import JSON_OR_TEXT, OpenpaiView, job_at, message_response, request_body, split_job_name
from hekla.api.parsers import ManifestText
from hekla.api.views import person
from hekla.apps.accounts.models import User
from hekla.apps.jobs import services as jobs
from hekla.apps.jobs.facts import spec_of
from hekla.apps.jobs.models import Job
from hekla.apps.openpai import selectors, services
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy.models import Tenant
from hekla.domain import formats, yaml_text
from hekla.domain.formats import openpai
from hekla.domain.formats.openpai import stored
from hekla.domain.phases import JobPhase
from hekla.domain.policies import LifecycleAction
from hekla.lib import clock

MOST = 5000
_MAX_OFFSET = 10_000_000
_ORDERS = {
    "jobName": "openpai_name", "submissionTime": "submitted_at", "username": "owner__username", "vc": "queue__name",
    "retries": "retry_count", "totalTaskNumber": "replicas", "state": "phase", "completionTime": "finished_at",
    "jobPriority": "priority",
}  # fmt: skip
_ENDING = (JobPhase.ABORTING, JobPhase.COMPLETING, JobPhase.TERMINATING)
_ACTIONS = {"START": LifecycleAction.RESUME_JOB, "STOP": LifecycleAction.ABORT_JOB}


class OpenpaiJobListView(OpenpaiView):
    """The list of all jobs, or of one person's jobs."""

    parser_classes = JSON_OR_TEXT  # type: ignore[assignment]

    def get(self, request: Request, user: str = "") -> Response:
        """The visible jobs, filtered and sorted by the query parameters."""
        query = request.query_params
        found = _filtered(
            selectors.visible_to(person(request)), {**query.dict(), **({"username": user} if user else {})}
        )
        start = _number(query.get("offset"), "offset", 0, _MAX_OFFSET)
        end = start + _number(query.get("limit"), "limit", MOST, MOST)
        rows = [descriptions.summary(job) for job in found[start:end]]
        if query.get("withTotalCount") == "true":
            return Response({"totalCount": found.count(), "data": rows})
        return Response(rows)

    def post(self, request: Request, user: str = "") -> Response:
        """Submit a JobConfig of protocol version 1 or 2."""
        return _submit(request, user)


class OpenpaiJobView(OpenpaiView):
    """One job."""

    def get(self, request: Request, attempt: int | None = None, **where: str) -> Response:
        """The job with the attempt in the URL; by default the last attempt."""
        attempts = descriptions.AttemptHistory(job_at(request, where))
        return Response(attempts.detail(attempt_number(attempts, attempt)))


class OpenpaiJobV1View(OpenpaiJobView):
    """One job at the URLs of version 1, which also submit and delete it."""

    parser_classes = JSON_OR_TEXT  # type: ignore[assignment]

    def put(self, request: Request, **where: str) -> Response:
        """Submit a JobConfig with the name in the URL, as in version 1."""
        owner, name = split_job_name(person(request), where)
        return _submit(request, owner, name)

    def delete(self, request: Request, **where: str) -> Response:
        """Delete a finished job from the lists. Its events stay."""
        job = job_at(request, where)
        jobs.delete(job, user=person(request), now=clock.now())
        return message_response(f"Delete job {descriptions.framework_name(job)} successfully.")


class JobConfigView(OpenpaiView):
    """The JobConfig of a job."""

    is_version_1 = False

    def get(self, request: Request, **where: str) -> HttpResponse:
        """The submitted JobConfig without secrets. A job submitted in another format gets an equivalent JobConfig."""
        job = job_at(request, where)
        submission = selectors.submission_of(job)
        document = yaml_text.read(submission.config)[0] if submission else {}
        if (known := "jobName" if self.is_version_1 else "protocolVersion") not in document:
            form = openpai.OPENPAI_V1 if self.is_version_1 else openpai.OPENPAI
            document = form.write(spec_of(job))
        if known == "jobName":
            return Response(document)
        return HttpResponse(yaml_text.write([document]), content_type="text/yaml; charset=utf-8")


class ExecutionTypeView(OpenpaiView):
    """Starts and stops a job."""

    def put(self, request: Request, **where: str) -> Response:
        """Stop a job, or restart a stopped one. Without effect if the job is in that state already."""
        user, job = person(request), job_at(request, where)
        action = request_body(request).get("value")
        if not isinstance(action, str) or action not in _ACTIONS:
            raise wrong_parameter(_("“value” must be START or STOP."))
        if _is_in_state(job, action):
            jobs.require_right(job, user)
        else:
            jobs.command(job, _ACTIONS[action], user=user, now=clock.now())
        return message_response(f"Execute job {descriptions.framework_name(job)} successfully.")


class SshView(OpenpaiView):
    """SSH to pods, which Hekla does not support."""

    def get(self, request: Request, **where: str) -> Response:
        """Raises NoJobSshInfoError."""
        name = descriptions.framework_name(job_at(request, where))
        raise OpenpaiError(
            HTTPStatus.NOT_FOUND, "NoJobSshInfoError", _("SSH info of job %(name)s is not found.") % {"name": name}
        )


class TagView(OpenpaiView):
    """The tags of a job."""

    def put(self, request: Request, **where: str) -> Response:
        """Add a tag."""
        job, tag = job_at(request, where), _tag(request)
        services.add_tag(job, tag, user=person(request), now=clock.now())
        return message_response(
            f"Add tag {tag} for job {descriptions.framework_name(job)} successfully.", HTTPStatus.OK
        )

    def delete(self, request: Request, **where: str) -> Response:
        """Delete a tag."""
        job, tag = job_at(request, where), _tag(request)
        if not hasattr(job, "jobconfig") or tag not in job.jobconfig.tags:
            facts = {"tag": tag[:100], "name": descriptions.framework_name(job)}
            message = _("Tag %(tag)s is not found for job %(name)s.") % facts
            jobs.require_right(job, person(request))
            raise OpenpaiError(HTTPStatus.NOT_FOUND, "NoTagError", message)
        services.delete_tag(job, tag, user=person(request), now=clock.now())
        return message_response(
            f"Delete tag {tag} from job {descriptions.framework_name(job)} successfully.", HTTPStatus.OK
        )


def attempt_number(attempts: descriptions.AttemptHistory, number: int | None) -> int:
    """The number of the requested attempt, by default the last. Raises OpenpaiError."""
    if number is None:
        return attempts.last
    if number > attempts.last:
        name = descriptions.framework_name(attempts.job)
        message = _("Job attempt %(number)d is not found in %(name)s.") % {"number": number, "name": name}
        raise OpenpaiError(HTTPStatus.NOT_FOUND, "NoJobError", message)
    return number


def _tag(request: Request) -> str:
    tag = request_body(request).get("value")
    if not isinstance(tag, str) or not tag:
        raise wrong_parameter(_("“value” must be a tag."))
    return tag


def _is_in_state(job: Job, action: str) -> bool:
    phase = JobPhase(job.phase)
    return phase.is_final or phase in _ENDING if action == "STOP" else phase is not JobPhase.ABORTED


def _submit(request: Request, owner: str, name: str = "") -> Response:
    user = person(request)
    if owner and owner != user.username:
        facts = {"user": user.username, "owner": owner[:150]}
        message = _("User %(user)s is not allowed to add jobs for %(owner)s.") % facts
        raise OpenpaiError(HTTPStatus.FORBIDDEN, "ForbiddenUserError", message)
    text = _text(request.data)
    config = stored.document_of(text)
    if name:
        config = {**config, "jobName" if "jobName" in config else "name": name}
        text = yaml_text.write([config])
    loaded, own_name = formats.load(text), stored.own_name(config)
    tenant = _tenant(user, request.query_params.get("tenant", ""), loaded.spec.queue)
    services.submit(loaded=loaded, name=own_name, config=config, tenant=tenant, user=user, now=clock.now())
    message = f"Update job {own_name} for user {user.username} successfully."
    return message_response(message, warnings=list(loaded.warnings))


def _text(body: Any) -> str | bytes:  # noqa: ANN401  (the output of any parser)
    if isinstance(body, ManifestText):
        return body["text"]
    return json.dumps(body, ensure_ascii=False)


def _tenant(user: User, slug: str, queue: str) -> Tenant:
    """The tenant in the URL, otherwise the first tenant of the person that can use the queue. Raises OpenpaiError."""
    tenant = tenancy.visible_to(user).filter(slug=slug).first() if slug else selectors.tenant_of(user, queue)
    if tenant is None and slug:
        raise OpenpaiError(HTTPStatus.NOT_FOUND, "NoVirtualClusterError", _("Unknown tenant."))
    if tenant is None:
        message = _("You cannot submit to any tenant. Ask a platform admin.")
        raise OpenpaiError(HTTPStatus.FORBIDDEN, "ForbiddenUserError", message)
    return tenant


def _filtered(jobs: QuerySet[Job], query: dict[str, str]) -> QuerySet[Job]:
    for name, field in (("username", "owner__username__in"), ("vc", "queue__name__in")):
        if query.get(name):
            jobs = jobs.filter(**{field: query[name].split(",")})
    if query.get("state"):
        jobs = jobs.filter(states.matching(query["state"].split(",")))
    if word := query.get("keyword"):
        among = Q(openpai_name__contains=word) | Q(queue__name__contains=word)
        jobs = jobs.filter(among | Q(owner__username__contains=word))
    for name, is_wanted in (("tagsContain", True), ("tagsNotContain", False)):
        if query.get(name):
            tagged = Q()
            for tag in query[name].split(","):
                tagged |= Q(jobconfig__tags__contains=[tag])
            jobs = jobs.filter(tagged) if is_wanted else jobs.filter(~tagged | Q(jobconfig__isnull=True))
    return jobs.order_by(*_order(query.get("order", "")))


def _order(text: str) -> list[OrderBy]:
    """The order of `order` (FIELD,ASC or FIELD,DESC), by default newest first. Unset times count as the latest."""
    field, _comma, direction = text.partition(",")
    if field not in _ORDERS or direction not in ("ASC", "DESC"):
        return [F("submitted_at").desc(), F("id").desc()]
    column = F(_ORDERS[field])
    ordered = column.asc(nulls_last=True) if direction == "ASC" else column.desc(nulls_first=True)
    return [ordered, F("id").desc()]


def _number(text: str | None, name: str, otherwise: int, most: int) -> int:
    if text is None:
        return otherwise
    if not text.isascii() or not text.isdigit() or int(text[:9]) > most or len(text) > len(str(most)):
        raise wrong_parameter(_("“%(name)s” must be an integer of at most %(most)d.") % {"name": name, "most": most})
    return int(text)
