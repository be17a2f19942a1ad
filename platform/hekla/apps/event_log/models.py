"""The event log. Rows are only added; everything else about the past can be derived from them.

Only `services.purge` deletes rows, at the end of a tenant's retention.
"""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.fields.json import KeyTextTransform
from django.utils.translation import gettext as _

from hekla.lib.tracing import MAX_CONTEXT


class LoggedEvent(models.Model):
    """An event. `id`: its number in the order in which transactions became visible.

    There are no foreign keys: the log outlives the rows that it describes. `topics`: the live streams with this event,
    for example `job:UUID`, `tenant:7`, `cluster:1`. `impersonator_name`: the admin who impersonated the actor, if any.
    `session`: the session with a pod whose token the actor used, if any. `trace`: the context of the span in which it
    was recorded, if traces are on (`hekla.lib.tracing`).
    """

    at = models.DateTimeField()
    kind = models.CharField(max_length=64)
    subject = models.CharField(max_length=80)
    tenant_id = models.BigIntegerField(null=True)
    actor_id = models.BigIntegerField(null=True)
    actor_name = models.CharField(max_length=150)
    impersonator_name = models.CharField(max_length=150, default="", db_default="")
    session = models.CharField(max_length=150, default="", db_default="")
    trace = models.CharField(max_length=MAX_CONTEXT, default="", db_default="")
    topics = ArrayField(models.CharField(max_length=80))
    payload = models.JSONField()

    class Meta:
        indexes = [
            models.Index(fields=["subject", "id"], name="event_by_subject"),
            models.Index(fields=["tenant_id", "id"], name="event_by_tenant"),
            models.Index(fields=["at"], name="event_by_time"),
            # Few events have a person as actor, and they are queried by person and by kind. A migration adds an index
            # on parts of the names in them.
            models.Index(
                fields=["actor_name", "id"], condition=models.Q(actor_id__isnull=False), name="event_of_person"
            ),
            models.Index(fields=["id"], condition=models.Q(actor_id__isnull=False), name="event_of_people"),
            models.Index(fields=["at"], condition=models.Q(actor_id__isnull=False), name="event_of_people_by_time"),
            models.Index(
                fields=["kind", "id"], condition=models.Q(actor_id__isnull=False), name="event_of_people_by_kind"
            ),
            models.Index(
                fields=["subject", "id"], condition=models.Q(actor_id__isnull=False), name="event_of_people_by_subject"
            ),
            models.Index(
                fields=["impersonator_name", "id"], condition=~models.Q(impersonator_name=""), name="event_on_behalf"
            ),
            # Few among the events of a job and its pods, and queried each time that the job's page is opened.
            models.Index(
                fields=["subject", "id"],
                condition=models.Q(kind__in=["JobUnschedulable", "JobPhaseChanged", "GangPhaseChanged", "PodEvicted"]),
                name="event_of_a_course",
            ),
            # Finds the evictions for a job.
            models.Index(
                KeyTextTransform("for_job", "payload"),
                "id",
                condition=models.Q(kind="PodEvicted"),
                name="event_of_gain",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.pk} {self.kind} {self.subject}"

    @property
    def who(self) -> str:
        """The actor's name; with impersonation, the names of the admin and the person; with a session's token, both."""
        names = {"admin": self.impersonator_name, "person": self.actor_name, "session": self.session}
        if self.session:
            return _("%(person)s (from %(session)s)") % names
        return _("%(admin)s as %(person)s") % names if self.impersonator_name else self.actor_name


class Numbering(models.Model):
    """The one row that assigns the numbers. `last`: the newest number; `purged`: how many events were purged.

    A number is assigned in the transaction that writes its event, so there are no gaps: an event that is missing and
    was not purged is lost.
    """

    last = models.BigIntegerField()
    purged = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.last} numbers, {self.purged} of them purged"
