"""The world of the access tests with many rows of each kind, for the pages that list them."""

from datetime import timedelta
from itertools import count
from typing import Any

from django.db.models import Model
from tests.apps.access_world import World
from tests.support.row_copies import add_copies

from hekla.apps.accounts.models import ApiToken
from hekla.apps.batches.models import Batch, BatchJob
from hekla.apps.clusters.models import ClusterHealth, Environment, Node, PolicyVersion
from hekla.apps.demonstrations.models import DemoRun
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.flows.models import Flow, JobTemplate
from hekla.apps.gallery.models import Template, TemplateVersion
from hekla.apps.identities.models import Identity
from hekla.apps.invitations.models import Invitation
from hekla.apps.jobs.models import Job, SavedView
from hekla.apps.login_sessions.models import LoginSession
from hekla.apps.notifications.models import Notification
from hekla.apps.presets.models import Preset
from hekla.apps.priorities.models import PriorityClass
from hekla.apps.queues.models import FederatedQueue, Queue
from hekla.apps.quotas.models import Quota
from hekla.apps.schedules.models import Schedule, ScheduleRun
from hekla.apps.signin.models import SecurityKey
from hekla.apps.tenancy.models import Department, DepartmentHead, Membership
from hekla.apps.usage.models import Sample
from hekla.lib import clock


class CrowdedWorld:
    """Adds copies of the rows of a world. Its first rows are the ones that the routes name: they get many children."""

    def __init__(self, world: World) -> None:
        self._ada, self._lab, self._cluster = world.people.ada, world.people.lab, world.people.cluster
        self._world, self._now, self._numbers = world, clock.now(), range(0)
        self._bob, self._queue = world.people.bob, Queue.objects.get(name="labs-own")
        self._job, self._pod = world.job, world.pod
        self._first = {kind: kind.objects.earliest("pk") for kind in _KINDS}
        self._membership = Membership.objects.get(tenant=self._lab, user=self._bob)
        self._event = LoggedEvent.objects.filter(subject=f"job:{self._job.uid}").earliest("pk")
        self._event_numbers = count(1_000_000)

    def add(self, numbers: range) -> None:
        """Add a row of each kind for each number."""
        self._numbers = numbers
        self._add_people()
        self._add_clusters()
        self._add_queues()
        self._add_jobs()
        self._add_owned()
        self._add_personal()

    def _copies(self, row: Model, **parents: Any) -> list[Any]:
        return add_copies(row, self._numbers, **parents)

    def _add_people(self) -> None:
        users, tenants = self._copies(self._bob), self._copies(self._lab)
        departments = self._copies(self._first[Department])
        self._copies(self._first[DepartmentHead], user=users)
        self._copies(self._first[DepartmentHead], department=departments, user=self._ada)
        self._copies(self._membership, user=users)
        self._copies(self._membership, tenant=tenants, user=self._ada)
        self._copies(Quota(tenant=self._lab, of=Quota.Of.ONE, jobs=1), user=users)
        self._copies(self._first[Invitation])
        _connect(Queue.tenants.through, queue=self._queue, tenant=tenants)

    def _add_clusters(self) -> None:
        made = self._copies(self._cluster, created_at=self._now - timedelta(hours=1))  # so none has a controller
        self._copies(ClusterHealth(checked_at=self._now, since=self._now, problem="network"), cluster=made)
        for kind in (Node, PolicyVersion, Environment, PriorityClass):
            self._copies(self._first[kind])

    def _add_queues(self) -> None:
        queues, federated = self._copies(self._queue), self._copies(self._first[FederatedQueue])
        child = Queue(
            cluster=self._cluster, name="child", parent=self._queue, changed_at=self._now, created_at=self._now
        )
        self._copies(child)
        _connect(Queue.tenants.through, queue=queues, tenant=self._lab)
        _connect(FederatedQueue.tenants.through, federatedqueue=federated, tenant=self._lab)
        _connect(FederatedQueue.members.through, federatedqueue=federated, queue=self._queue)
        _connect(FederatedQueue.members.through, federatedqueue=self._first[FederatedQueue], queue=queues)

    def _add_jobs(self) -> None:
        self._copies(self._job)
        values = _values(self._job)
        runs, members = (self._copies(Job(**{**values, "name": name})) for name in ("of-schedule", "of-sweep"))
        self._copies(self._pod)
        Sample.objects.bulk_create(
            Sample(pod=self._pod, at=self._now - timedelta(minutes=n), cpu_ms=n, memory_bytes=1, span_seconds=60)
            for n in self._numbers
        )
        self._copies(self._first[BatchJob], job=members)
        run = ScheduleRun(schedule=self._first[Schedule], due_at=self._now, outcome=ScheduleRun.Outcome.STARTED)
        self._copies(run, job=runs)
        LoggedEvent.objects.bulk_create(_of_number(self._event, next(self._event_numbers)) for _ in self._numbers)
        ended = {"owner": self._ada, "started_at": self._now, "ended_at": self._now}
        self._copies(DemoRun(demonstration="gangs", cluster=self._cluster, tenant=self._lab, **ended))

    def _add_owned(self) -> None:
        for kind in (Flow, JobTemplate, Batch, Schedule, SavedView, Preset, TemplateVersion):
            self._copies(self._first[kind])
        cards = self._copies(self._first[Template], tenant=None)
        self._copies(self._first[TemplateVersion], template=cards)

    def _add_personal(self) -> None:
        mine = {"user": self._ada}
        self._copies(self._first[ApiToken], **mine)
        self._copies(SecurityKey(**mine, name="k", credential_id=b"k", public_key=b"k", created_at=self._now))
        self._copies(LoginSession(**mine, session_key="k", since=self._now, last_active_at=self._now))
        used = {"created_at": self._now, "last_used_at": self._now}
        self._copies(Identity(**mine, issuer="i", subject="s", provider="none", **used))
        about = {"job_uid": self._job.uid, "job_name": self._job.name, "tenant_id": self._lab.pk}
        self._copies(Notification(**mine, key="k", moment="started", at=self._now, **about))


_KINDS: tuple[type[Any], ...] = (
    ApiToken, Batch, BatchJob, Department, DepartmentHead, Environment, FederatedQueue, Flow, Invitation, JobTemplate,
    Node, PolicyVersion, Preset, PriorityClass, SavedView, Schedule, Template, TemplateVersion,
)  # fmt: skip


def _values(row: Model) -> dict[str, Any]:
    """The values of a row, without those that another row must not have."""
    return {field.attname: getattr(row, field.attname) for field in row._meta.local_fields if not field.unique}


def _of_number(event: LoggedEvent, number: int) -> LoggedEvent:
    return LoggedEvent(**{**_values(event), "pk": number})


def _connect(through: Any, **ends: Any) -> None:
    rows = max(len(end) for end in ends.values() if isinstance(end, list))
    columns = {name: end if isinstance(end, list) else [end] * rows for name, end in ends.items()}
    through.objects.bulk_create(
        through(**dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True)
    )
