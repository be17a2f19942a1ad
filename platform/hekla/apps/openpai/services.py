"""Submits jobs under their OpenPAI names, and tags them."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import IntegrityError
from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.accounts.services import actor_of
from hekla.apps.event_log.services import unit_of_work
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job
from hekla.apps.jobs.services.submission import JobNameConflict
from hekla.apps.jobs.services.telling import tell
from hekla.apps.openpai import selectors
from hekla.apps.openpai.models import Submission
from hekla.apps.tenancy.models import Tenant
from hekla.domain import events, yaml_text
from hekla.domain.errors import Forbidden, Invalid, NotFound, Problem
from hekla.domain.formats import LoadedJob
from hekla.domain.formats.openpai.stored import mask_secrets, rename
from hekla.domain.validation import is_text

MAX_TAGS = 50
MAX_TAG = 100


def submit(
    *, loaded: LoadedJob, name: str, config: Mapping[str, Any], tenant: Tenant, user: User, now: datetime
) -> Job:
    """Submit the job of a JobConfig. Raises what `jobs.services.submit` raises.

    The name must be free among the person's own jobs (else JobNameConflict). If another job of the tenant has it, this
    job gets a longer name there.
    """
    if selectors.name_exists(user, name):
        raise _name_conflict(user, name)
    text = yaml_text.write([mask_secrets(config)])
    try:
        with unit_of_work():
            Submission.objects.filter(owner=user, name=name, job__deleted_at__isnull=False).delete()
            job = _take_in(loaded, name, tenant, user, now)
            Submission.objects.create(job=job, owner=user, name=name, config=text)
    except IntegrityError as error:
        raise _name_conflict(user, name) from error
    return job


def _take_in(loaded: LoadedJob, name: str, tenant: Tenant, user: User, now: datetime) -> Job:
    try:
        return services.submit(spec=loaded.spec, tenant=tenant, user=user, now=now, secrets=loaded.secrets)
    except JobNameConflict:
        spec = rename(loaded.spec, user.username, name)
        return services.submit(spec=spec, tenant=tenant, user=user, now=now, secrets=loaded.secrets)


def _name_conflict(user: User, name: str) -> JobNameConflict:
    sentence = _("Job %(user)s~%(name)s exists already. Choose another name, or delete that job.")
    return JobNameConflict(sentence % {"user": user.username, "name": name}, "name")


def add_tag(job: Job, tag: str, *, user: User, now: datetime) -> None:
    """Add a tag to a job. Raises Forbidden, NotFound, Invalid."""
    if not tag or len(tag) > MAX_TAG or not is_text(tag):
        raise Invalid([Problem("value", _("A tag is a string of at most %(most)d characters.") % {"most": MAX_TAG})])
    with unit_of_work():
        submission = _submission(job, user)
        if len(submission.tags) >= MAX_TAGS:
            raise Invalid([Problem("value", _("A job has at most %(most)d tags.") % {"most": MAX_TAGS})])
        if tag not in submission.tags:
            submission.tags = [*submission.tags, tag]
            submission.save(update_fields=["tags"])
            tell(job, events.JobTagged(tag=tag), actor=actor_of(user), now=now)


def delete_tag(job: Job, tag: str, *, user: User, now: datetime) -> None:
    """Remove a tag from a job. Raises Forbidden, NotFound."""
    with unit_of_work():
        submission = _submission(job, user)
        if tag not in submission.tags:
            raise NotFound(_("The job does not have this tag."))
        submission.tags = [other for other in submission.tags if other != tag]
        submission.save(update_fields=["tags"])
        tell(job, events.JobTagged(tag=tag, is_on=False), actor=actor_of(user), now=now)


def _submission(job: Job, user: User) -> Submission:
    """The row with the tags, locked. Raises Forbidden, NotFound."""
    if not jobs.may_act(user, job):
        raise Forbidden(_("Only the owner of the job and tenant admins can do this."))
    submission = Submission.objects.select_for_update().filter(job=job).first()
    if submission is None:
        raise NotFound(_("This job was not submitted as a JobConfig, so it has no tags."))
    return submission
