"""The one log. Rows are only ever added; everything else about the past can be derived from them.

They leave again in one way only: `services.purge`, when the time is over for which a tenant keeps its history.
"""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.fields.json import KeyTextTransform
from django.utils.translation import gettext as _


class LoggedEvent(models.Model):
    """Something that happened. `id` is its place in the order in which transactions became visible.

    Nothing refers to other tables: the log outlives the rows that it tells of. `topics` are the live streams that it
    belongs to, such as `job:UUID`, `tenant:7`, `cluster:1`. `acting_name`: who did it in the name of the
    actor, where somebody acted for them.
    """

    at = models.DateTimeField()
    kind = models.CharField(max_length=64)
    subject = models.CharField(max_length=80)
    tenant_id = models.BigIntegerField(null=True)
    actor_id = models.BigIntegerField(null=True)
    actor_name = models.CharField(max_length=150)
    acting_name = models.CharField(max_length=150, default="", db_default="")
    topics = ArrayField(models.CharField(max_length=80))
    payload = models.JSONField()

    class Meta:
        indexes = [
            models.Index(fields=["subject", "id"], name="event_by_subject"),
            models.Index(fields=["tenant_id", "id"], name="event_by_tenant"),
            models.Index(fields=["at"], name="event_by_time"),
            # What people did is little among all that is told, and is asked for by who it was.
            models.Index(
                fields=["actor_name", "id"], condition=models.Q(actor_id__isnull=False), name="event_of_person"
            ),
            models.Index(fields=["id"], condition=models.Q(actor_id__isnull=False), name="event_of_people"),
            models.Index(fields=["acting_name", "id"], condition=~models.Q(acting_name=""), name="event_on_behalf"),
            # Few among all that is told of a job's pods, and asked for each time that its page is opened.
            models.Index(
                fields=["subject", "id"],
                condition=models.Q(kind__in=["JobUnschedulable", "JobPhaseChanged", "GangPhaseChanged", "PodEvicted"]),
                name="event_of_a_course",
            ),
            # Whom somebody's pods had to make room for.
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
        """Who did it, and for whom where somebody acted for another."""
        names = {"admin": self.acting_name, "person": self.actor_name}
        return _("%(admin)s as %(person)s") % names if self.acting_name else self.actor_name


class Numbering(models.Model):
    """The one row that gives out the numbers. `last`: the newest; `purged`: how many of them are no events any more.

    A number is taken in the transaction that writes its event, so none is ever left out: what is missing and was not
    purged is lost.
    """

    last = models.BigIntegerField()
    purged = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.last} numbers, {self.purged} of them purged"
