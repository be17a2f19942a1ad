"""Recordings of shared terminals: begin, end, cut, delete, and what their limits delete."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db.models import F, Sum
from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.accounts.services import actor_of
from hekla.apps.event_log.services import unit_of_work
from hekla.apps.jobs import services as job_services
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.secrets import selectors as secrets
from hekla.apps.sharing import files, selectors
from hekla.apps.sharing.models import OpenTerminal, Recording
from hekla.apps.sharing.services.telling import place, tell
from hekla.apps.workbench import selectors as workbench
from hekla.domain import events
from hekla.domain.errors import Forbidden, Invalid, Problem, Refused
from hekla.lib import asciicast

MAX_BYTES = 16 * 1024 * 1024
"""Of one recording."""
MAX_TENANT_BYTES = 2 * 1024**3
"""Of all recordings of a tenant. The oldest are deleted first."""
MAX_DAYS = 30
MAX_OF_JOB = 200
_LONGEST_SECONDS = 365 * 24 * 3600.0
_BATCH = 200
_UNCOMMITTED = timedelta(hours=1)
"""A younger file may belong to a row that is not committed yet."""


def begin_recording(terminal: OpenTerminal, size: tuple[int, int], *, user: User, now: datetime) -> Recording:
    """Begin to record a terminal, because this person joins its owner. `size`: columns and rows.

    Raises Forbidden without an invitation or the right to act on the job, Refused if the file cannot be written.
    """
    pod = terminal.pod
    if not selectors.may_enter(terminal, user, types=False, now=now):
        raise Forbidden("No invitation.")
    with unit_of_work():
        made = Recording.objects.create(
            pod=pod, terminal=terminal, owner=terminal.owner, people=[terminal.owner.username],
            columns=size[0], rows=size[1], started_at=now,
        )  # fmt: skip
        facts = {**place(pod), "recording": made.uid.hex, "owner": terminal.owner.username}
        tell(pod, events.RecordingStarted.model_validate(facts), actor=actor_of(user), now=now)
        _begin_file(made)
    return made


def known_secrets(pod: Pod) -> list[str]:
    """The secrets of the job, and of the tools in the pod, that recordings must not contain.

    Raises NotFound or DecryptionError if they cannot be decrypted any more.
    """
    found = list(secrets.of_job(pod.job.uid).values())
    return [*found, *(workbench.secret_of(one) for one in workbench.of_job(pod.job) if one.pod_id == pod.pk)]


def finish_recording(
    recording: Recording, people: Sequence[str], *, seconds: float, is_full: bool, now: datetime
) -> None:
    """Record the end of a recording."""
    facts = {"seconds": round(seconds, 3), "size": files.size(recording.uid), "is_full": is_full}
    Recording.objects.filter(pk=recording.pk).update(ended_at=now, people=list(people), **facts)


def cut_recording(source: Recording, begin: float, end: float, *, user: User, now: datetime) -> Recording:
    """Save a part of a recording as another one. Raises Forbidden, Invalid, Refused."""
    job_services.require_right(source.pod.job, user)
    if not 0 <= begin < (end := min(end, _LONGEST_SECONDS)):
        raise Invalid([Problem("end", _("The end must be after the begin."))])
    with unit_of_work():
        Job.objects.select_for_update(of=("self",), no_key=True).get(pk=source.pod.job_id)  # one cut at a time
        if Recording.objects.filter(pod__job=source.pod.job_id).count() >= MAX_OF_JOB:
            raise Refused(_("This job has %(n)s recordings, which is the most. Delete some first.") % {"n": MAX_OF_JOB})
        made = Recording.objects.create(
            pod=source.pod, terminal=source.terminal, owner=source.owner, people=source.people, columns=source.columns,
            rows=source.rows, started_at=source.started_at + timedelta(seconds=begin), ended_at=now, source=source,
        )  # fmt: skip
        _begin_file(made)
        seconds = _copy(source, made, begin, end)
        made.seconds, made.size = round(seconds, 3), files.size(made.uid)
        made.save(update_fields=["seconds", "size"])
        facts = {**place(source.pod), "recording": made.uid.hex, "source": source.uid.hex}
        tell(source.pod, events.RecordingCut.model_validate(facts), actor=actor_of(user), now=now)
    return made


def delete_recording(recording: Recording, *, user: User, now: datetime) -> None:
    """Delete a recording with its file. Raises Forbidden, Refused while it goes on."""
    job_services.require_right(recording.pod.job, user)
    if recording.ended_at is None:
        raise Refused(_("The terminal is still being recorded. Delete the recording once it has ended."))
    with unit_of_work():
        facts = {**place(recording.pod), "recording": recording.uid.hex, "owner": recording.owner.username}
        tell(recording.pod, events.RecordingDeleted.model_validate(facts), actor=actor_of(user), now=now)
        uid = recording.uid
        recording.delete()
    files.remove(uid)


def tidy_recordings(*, now: datetime) -> int:
    """Delete what is too old or too much, and end those whose terminal has ended with its process.

    Files without a row go too: their job was deleted. Returns the number of deleted recordings.
    """
    for lost in Recording.objects.filter(ended_at=None, terminal__ended_at__isnull=False)[:_BATCH]:
        last = 0.0
        for event in asciicast.events(files.lines(lost.uid)):
            last = event.at
        finish_recording(lost, lost.people, seconds=last, is_full=lost.is_full, now=now)
    ended = Recording.objects.filter(ended_at__isnull=False)
    gone = [*ended.filter(started_at__lt=now - timedelta(days=MAX_DAYS)).order_by("started_at")[:_BATCH], *_surplus()]
    Recording.objects.filter(pk__in=[one.pk for one in gone]).delete()
    known = set(Recording.objects.values_list("uid", flat=True))
    for uid in files.stored((now - _UNCOMMITTED).timestamp()):
        if uid not in known:
            files.remove(uid)
    return len(gone)


def _surplus() -> list[Recording]:
    """The oldest recordings of tenants that have too many bytes."""
    sums = Recording.objects.values(tenant=F("pod__job__tenant")).annotate(bytes=Sum("size")).order_by()
    gone: list[Recording] = []
    for one in sums.filter(bytes__gt=MAX_TENANT_BYTES):
        surplus = one["bytes"] - MAX_TENANT_BYTES
        of_tenant = Recording.objects.filter(pod__job__tenant=one["tenant"], ended_at__isnull=False)
        for recording in of_tenant.order_by("started_at")[:_BATCH]:
            if surplus <= 0:
                break
            gone.append(recording)
            surplus -= recording.size
    return gone


def _begin_file(made: Recording) -> None:
    """Write the header. Raises Refused."""
    title = f"{made.pod.job.name} {made.pod}"
    header = asciicast.header(made.columns, made.rows, timestamp=int(made.started_at.timestamp()), title=title)
    try:
        files.append(made.uid, header)
    except OSError as error:
        raise Refused(_("The recording cannot be written now. Try again later.")) from error


def _copy(source: Recording, made: Recording, begin: float, end: float) -> float:
    """Copy the events of a part. Returns its length in seconds."""
    last, buffer = 0.0, bytearray()
    for event in asciicast.cut(asciicast.events(files.lines(source.uid)), begin, end):
        last = event.at
        buffer += event.encode()
        if len(buffer) > 1024 * 1024:
            files.append(made.uid, bytes(buffer))
            buffer.clear()
    files.append(made.uid, bytes(buffer))
    return last
