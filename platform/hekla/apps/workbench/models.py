"""Sessions: ports of running pods and tools in them, which a person opens in the browser on an origin of their own."""

import uuid

from django.conf import settings
from django.db import models
from django.utils.translation import gettext as _

from hekla.apps.accounts.models import ApiToken
from hekla.apps.jobs.models import Pod
from hekla.domain.events import ToolSessionEnd
from hekla.domain.phases import PodPhase
from hekla.domain.tools import Tool


class SessionState(models.TextChoices):
    STARTING = "starting"
    READY = "ready"
    ENDED = "ended"


class ToolSession(models.Model):
    """A session of one person with a port of a pod, or with a tool that Hekla started in the pod.

    `slug`: the first label of its host name, which nobody can guess. `port`: 0 until the tool has one. `secret`:
    what the tool demands, encrypted; empty for ports. `process`: the tool's process group in the pod; 0: none.
    `token`: with which its programs act as the owner, if it has one. `ready_at`: when it first answered. `message`:
    the last lines of a tool that ended by itself.
    """

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    slug = models.CharField(max_length=40, unique=True, editable=False)
    pod = models.ForeignKey(Pod, on_delete=models.CASCADE, related_name="+")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    tool = models.CharField(max_length=16, choices=[(tool.value, tool.value) for tool in Tool])
    port = models.PositiveIntegerField(default=0)
    secret = models.BinaryField(default=bytes, editable=False)
    process = models.PositiveIntegerField(default=0)
    token = models.OneToOneField(ApiToken, on_delete=models.SET_NULL, null=True, default=None, related_name="+")
    message = models.TextField(blank=True, default="")
    created_at = models.DateTimeField()
    ready_at = models.DateTimeField(null=True, default=None)
    ended_at = models.DateTimeField(null=True, default=None)
    end_reason = models.CharField(
        max_length=8, blank=True, default="", choices=[(reason.value, reason.value) for reason in ToolSessionEnd]
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["pod", "owner", "tool", "port"],
                condition=models.Q(ended_at__isnull=True),
                name="one_open_session_of_a_port",
            )
        ]
        indexes = [
            models.Index(fields=["owner"], condition=models.Q(ended_at__isnull=True), name="session_open_by_owner"),
            models.Index(fields=["pod", "-created_at"], name="session_by_pod"),
        ]

    def __str__(self) -> str:
        return self.label

    @property
    def label(self) -> str:
        """The tool, or the port."""
        return _("Port %(n)d") % {"n": self.port} if self.tool == Tool.PORT else Tool(self.tool).label

    @property
    def place(self) -> str:
        """The tool or port, and the pod, in one phrase of at most 150 characters."""
        pod = f"{self.pod.task}-{self.pod.index}"
        return (_("%(tool)s in %(pod)s of %(job)s") % {"tool": self.label, "pod": pod, "job": self.pod.job.name})[:150]

    @property
    def state(self) -> SessionState:
        """Its state now. It has ended with its pod, also before that is recorded."""
        if self.ended_at is not None or self.pod.phase != PodPhase.RUNNING:
            return SessionState.ENDED
        return SessionState.STARTING if self.ready_at is None else SessionState.READY
