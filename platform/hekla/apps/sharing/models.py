"""Terminals that can be shared, invitations to them and to sessions, recordings, and forks of jobs."""

import uuid
from datetime import datetime
from enum import StrEnum

from django.conf import settings
from django.db import models
from django.urls import reverse
from django.utils.translation import gettext as _

from hekla.apps.jobs.models import Job, Pod
from hekla.apps.workbench.models import ToolSession
from hekla.domain.phases import PodPhase
from hekla.domain.sharing import GuestEnd, GuestRole

TERMINAL = "terminal"
"""In the place of a tool."""


class OpenTerminal(models.Model):
    """A terminal in a pod. A web process holds it; this row names it for invitations and recordings.

    `uid`: its id there. After a crash of that process it stays open until its owner opens another one, or the pod ends.
    """

    uid = models.UUIDField(unique=True, editable=False)
    pod = models.ForeignKey(Pod, on_delete=models.CASCADE, related_name="+")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    opened_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, default=None)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["pod", "owner"], condition=models.Q(ended_at__isnull=True), name="one_open_terminal"
            )
        ]

    def __str__(self) -> str:
        return self.label

    @property
    def label(self) -> str:
        """What it is, for people."""
        return _("Terminal")

    @property
    def tool(self) -> str:
        """As in events."""
        return TERMINAL

    @property
    def is_open(self) -> bool:
        """Whether it goes on."""
        return self.ended_at is None and self.pod.phase == PodPhase.RUNNING


class GuestState(StrEnum):
    OFFERED = "offered"
    ACCEPTED = "accepted"
    ENDED = "ended"


class Guest(models.Model):
    """The invitation of one person to one terminal or one session. It counts from their consent until it expires.

    `inviter`: who invited them; if that was an invited person too, this ends with their own invitation.
    """

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    pod = models.ForeignKey(Pod, on_delete=models.CASCADE, related_name="+")
    terminal = models.ForeignKey(OpenTerminal, null=True, on_delete=models.CASCADE, related_name="guests")
    session = models.ForeignKey(ToolSession, null=True, on_delete=models.CASCADE, related_name="guests")
    inviter = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    role = models.CharField(max_length=8, choices=[(role.value, role.value) for role in GuestRole])
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    accepted_at = models.DateTimeField(null=True, default=None)
    ended_at = models.DateTimeField(null=True, default=None)
    end_reason = models.CharField(
        max_length=8, blank=True, default="", choices=[(reason.value, reason.value) for reason in GuestEnd]
    )

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(terminal__isnull=True) ^ models.Q(session__isnull=True), name="guest_of_one_thing"
            ),
            models.UniqueConstraint(
                fields=["terminal", "person"], condition=models.Q(ended_at__isnull=True), name="one_guest_of_a_terminal"
            ),
            models.UniqueConstraint(
                fields=["session", "person"], condition=models.Q(ended_at__isnull=True), name="one_guest_of_a_session"
            ),
        ]
        indexes = [
            models.Index(fields=["person"], condition=models.Q(ended_at__isnull=True), name="guest_open_by_person")
        ]

    def __str__(self) -> str:
        return f"{self.target} ({self.role})"

    @property
    def target(self) -> OpenTerminal | ToolSession:
        """The terminal or session."""
        found = self.terminal or self.session
        assert found is not None  # noqa: S101  (a constraint of the table)
        return found

    @property
    def page(self) -> str:
        """The path of the page of the terminal, or of the person's invitations, which opens sessions."""
        if self.terminal is None:
            return reverse("sharing:mine")
        return f"{reverse('jobs:terminal', args=[self.pod.job.uid, self.pod_id])}?of={self.terminal.uid.hex}"

    def state(self, now: datetime) -> GuestState:
        """Its state at this time, also if its end is not recorded yet."""
        if self.ended_at is not None or self.expires_at <= now or self.pod.phase != PodPhase.RUNNING:
            return GuestState.ENDED
        if self.target.ended_at is not None:
            return GuestState.ENDED
        return GuestState.ACCEPTED if self.accepted_at else GuestState.OFFERED


class Recording(models.Model):
    """What a shared terminal showed, as a file in the data folder, or a part of another recording.

    `people`: the names of those who were there. `seconds`: its length. `size`: of its file in bytes. `is_full`: it
    reached the most bytes of a recording. `source`: what it is a part of.
    """

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    pod = models.ForeignKey(Pod, on_delete=models.CASCADE, related_name="+")
    terminal = models.ForeignKey(OpenTerminal, on_delete=models.CASCADE, related_name="+")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    people = models.JSONField(default=list)
    columns = models.PositiveIntegerField()
    rows = models.PositiveIntegerField()
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, default=None)
    seconds = models.FloatField(default=0)
    size = models.PositiveBigIntegerField(default=0)
    is_full = models.BooleanField(default=False)
    source = models.ForeignKey("self", null=True, on_delete=models.SET_NULL, related_name="+")

    class Meta:
        indexes = [
            models.Index(fields=["pod", "-started_at"], name="recording_by_pod"),
            models.Index(fields=["started_at"], name="recording_by_age"),
        ]

    def __str__(self) -> str:
        return f"recording {self.uid}"


class ForkState(models.TextChoices):
    WAITING = "waiting"
    COPYING = "copying"
    DONE = "done"
    FAILED = "failed"


class JobFork(models.Model):
    """A job with the specification of another one, which gets a copy of the files of one of its pods.

    `tool`: the tool that opens for the person once the files are there. `claimed_at`: when a worker began to copy.
    `files`, `size`: what was copied, in bytes. `left_out`: how many entries were not. `message`: why it failed.
    """

    job = models.OneToOneField(Job, on_delete=models.CASCADE, related_name="+")
    source = models.ForeignKey(Pod, on_delete=models.CASCADE, related_name="+")
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    tool = models.CharField(max_length=16, blank=True, default="")
    state = models.CharField(max_length=8, choices=ForkState.choices, default=ForkState.WAITING)
    created_at = models.DateTimeField()
    claimed_at = models.DateTimeField(null=True, default=None)
    ended_at = models.DateTimeField(null=True, default=None)
    files = models.PositiveIntegerField(default=0)
    size = models.PositiveBigIntegerField(default=0)
    left_out = models.PositiveIntegerField(default=0)
    message = models.CharField(max_length=500, blank=True, default="")

    class Meta:
        indexes = [
            models.Index(fields=["created_at"], condition=models.Q(ended_at__isnull=True), name="fork_to_copy"),
        ]

    def __str__(self) -> str:
        return f"fork of {self.source_id} as {self.job_id}"
