"""Edits of one row by two people: neither undoes what the other has changed."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from django.db import connection
from django.db.models import Manager
from tests.apps.access_world import SPEC as DOCUMENT
from tests.apps.conftest import People, make_people
from tests.support.examples import examples

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import User
from hekla.apps.clusters import services as clusters
from hekla.apps.clusters.models import NodeFacts
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.gallery import services as gallery
from hekla.apps.gallery.models import Template
from hekla.apps.jobs import services as jobs
from hekla.apps.jobs.models import Job
from hekla.apps.notifications import services as notifications
from hekla.apps.notifications.models import Preference
from hekla.apps.presets import services as presets
from hekla.apps.priorities import services as priorities
from hekla.apps.queues import services as queues
from hekla.apps.queues.models import Queue
from hekla.apps.quotas import services as quotas
from hekla.apps.quotas.models import Quota
from hekla.apps.schedules import selectors as schedule_selectors
from hekla.apps.schedules import services as schedules
from hekla.apps.schedules.models import Schedule
from hekla.apps.tenancy import departments
from hekla.apps.tenancy import services as tenancy
from hekla.apps.tenancy.models import Membership
from hekla.domain.errors import NotFound, Refused
from hekla.domain.jobspec import JobSpec
from hekla.domain.scaling import JobScale
from hekla.domain.schedules import ScheduleSpec
from hekla.lib import clock

SPEC = JobSpec.parse(DOCUMENT)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
PAIRS = examples(20)
Values = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Entity:
    """What people edit: its row, an edit of some fields of it, and two edits of different fields."""

    row: Callable[[People], Any]
    edit: Callable[[People, Any, Values], object]
    first: Values
    second: Values


def _acts() -> Values:
    return {"actor": PLATFORM, "now": clock.now()}


def _by(user: User) -> Values:
    return {"user": user, "now": clock.now()}


def _environment(_people: People) -> Any:
    return clusters.create_environment(name="env", description="", requirements="", **_acts())


def _federated_queue(people: People) -> Any:
    beyond = clusters.create(name="beyond", kind="simulated", config={}, **_acts())
    far, _near = (queues.create(cluster=beyond, name=name, **_acts()) for name in ("far", "near"))
    return queues.create_federated(name="over", members=[people.queue, far], **_acts())


def _edit_federated_queue(people: People, row: Any, values: Values) -> None:
    members = {"members": Queue.objects.filter(name__in=values["members"])} if "members" in values else {}
    queues.change_federated(row, **{**values, **members}, by=people.ada, **_acts())


def _quota(people: People) -> Any:
    _edit_quota(people, None, {"jobs": 1, "sessions": 1})
    return Quota.objects.get()


def _edit_quota(people: People, _row: Any, values: Values) -> None:
    quotas.bound(tenant=people.lab, of=Quota.Of.TENANT, user=None, bounds=values, **_acts())


def _preset(people: People) -> Any:
    return presets.save(name="usual", spec=SPEC, tenant=None, **_by(people.alice))


def _edit_preset(people: People, row: Any, values: Values) -> None:
    if "name" in values:
        row = presets.rename(row, values["name"], **_by(people.alice))
    if "is_default" in values:
        presets.set_default(row, is_default=values["is_default"], **_by(people.alice))


def _schedule(people: People) -> Any:
    spec = ScheduleSpec.parse({"name": "nightly", "cron": "@daily", "job": SPEC.document()})
    return schedules.create(spec=spec, tenant=people.lab, **_by(people.alice))


def _notification_settings(people: People) -> Any:
    _edit_notification_settings(people, None, {"moments": [], "channels": []})
    return Preference.objects.get()


def _edit_notification_settings(people: People, _row: Any, values: Values) -> None:
    notifications.choose(people.alice, values, now=clock.now())


def _job_notifications(people: People) -> Any:
    job = people.submit("one")
    return notifications.choose_for_job(people.alice, job, {"moments": [], "channels": [], "long_wait_minutes": 5})


def _edit_job_notifications(people: People, row: Any, values: Values) -> None:
    notifications.choose_for_job(people.alice, Job.objects.get(uid=row.job_uid), {"channels": [], **values})


def _edit_retention(people: People, row: Any, values: Values) -> None:
    retained = {name: values[name] for name in ("log_days", "history_days") if name in values}
    if retained:
        tenancy.set_retention(row, **retained, **_acts())
    if others := {name: value for name, value in values.items() if name not in retained}:
        tenancy.change(row, others, **_acts())


def _template(people: People) -> Any:
    return gallery.publish(title="Usual", description="", spec=SPEC, fields=[], tenant=people.lab, **_by(people.alice))


def _edit_template(people: People, row: Any, values: Values) -> None:
    if "title" in values:
        fields = {"title": values["title"], "description": "", "spec": SPEC, "fields": []}
        gallery.publish(**fields, tenant=None, template=row, **_by(people.alice))
    if values.get("withdrawn_at"):
        gallery.withdraw(row, user=people.alice, now=values["withdrawn_at"])
    elif "withdrawn_at" in values:
        Template.objects.update(withdrawn_at=None)


def _edit_job(people: People, row: Any, values: Values) -> None:
    if "priority" in values:
        row = jobs.set_priority(row, values["priority"], **_by(people.ada))
    if "replicas" in values:
        size = JobScale.parse({"tasks": {"main": {"replicas": values["replicas"], "min_available": 1}}})
        jobs.scale(row, size, **_by(people.ada))


def _node(people: People) -> Any:
    return people.cluster.nodes.get()


def _edit_node(people: People, row: Any, values: Values) -> None:
    if "is_cordoned" in values:
        clusters.cordon(row, cordoned=values["is_cordoned"], **_acts())
    if "message" in values:
        facts = NodeFacts("n1", row.allocatable, {}, message=values["message"])
        clusters.observe_nodes(people.cluster, [facts], now=clock.now())


ENTITIES = {
    "queue": Entity(
        lambda people: people.queue,
        lambda people, row, values: queues.change(row, values, by=people.ada, **_acts()),
        {"weight": 3},
        {"description": "new"},
    ),
    "federated queue": Entity(
        _federated_queue, _edit_federated_queue, {"description": "new"}, {"members": ["default", "near"]}
    ),
    "tenant": Entity(
        lambda people: people.lab,
        lambda _people, row, values: tenancy.change(row, values, **_acts()),
        {"name": "New"},
        {"description": "new"},
    ),
    "department": Entity(
        lambda _people: departments.create(slug="new", name="Old", **_acts()),
        lambda _people, row, values: departments.change(row, values, **_acts()),
        {"name": "New"},
        {"description": "new"},
    ),
    "cluster": Entity(
        lambda people: people.cluster,
        lambda _people, row, values: clusters.change(row, values, **_acts()),
        {"is_paused": True},
        {"config": {"speed": 2}},
    ),
    "node": Entity(_node, _edit_node, {"is_cordoned": True}, {"message": "new"}),
    "environment": Entity(
        _environment,
        lambda _people, row, values: clusters.change_environment(row, values, **_acts()),
        {"requirements": "numpy"},
        {"description": "new"},
    ),
    "person": Entity(
        lambda people: people.bob,
        lambda _people, row, values: accounts.change_user(row, values, password=None, **_acts()),
        {"display_name": "Robert"},
        {"is_active": False},
    ),
    "quota": Entity(_quota, _edit_quota, {"jobs": 9}, {"sessions": 8}),
    "priority class": Entity(
        lambda _people: priorities.create(name="high", values={"value": 1}, **_acts()),
        lambda _people, row, values: priorities.change(row, values, **_acts()),
        {"value": 2},
        {"description": "new"},
    ),
    "preset": Entity(_preset, _edit_preset, {"name": "other"}, {"is_default": True}),
    "schedule": Entity(
        _schedule,
        lambda people, row, values: schedules.change(row, values, **_by(people.alice)),
        {"cron": "@weekly"},
        {"suspended": True},
    ),
    "notification settings": Entity(
        _notification_settings,
        _edit_notification_settings,
        {"long_wait_minutes": 7},
        {"is_digest": True},
    ),
    "job notifications": Entity(
        _job_notifications, _edit_job_notifications, {"long_wait_minutes": 7}, {"moments": ["failed"]}
    ),
    "retention": Entity(
        lambda people: people.lab, _edit_retention, {"log_days": 7, "history_days": 400}, {"description": "new"}
    ),
    "gallery": Entity(_template, _edit_template, {"title": "New"}, {"withdrawn_at": NOON}),
    "job": Entity(lambda people: people.submit("one"), _edit_job, {"priority": 5}, {"replicas": 2}),
}


def _read(row: Any, names: Iterable[str]) -> Values:
    """The stored fields; those of a schedule are in its spec."""
    stored = type(row)._default_manager.get(pk=row.pk)
    spec = schedule_selectors.spec_of(stored) if isinstance(stored, Schedule) else stored
    values = {name: getattr(spec, name) for name in names}
    return {
        name: sorted(map(str, value.all())) if isinstance(value, Manager) else value for name, value in values.items()
    }


@pytest.mark.parametrize("name", ENTITIES)
def test_edit_of_a_stale_row_keeps_what_others_changed(people: People, name: str) -> None:
    entity = ENTITIES[name]
    row = entity.row(people)
    other = type(row)._default_manager.get(pk=row.pk)
    entity.edit(people, row, entity.first)
    entity.edit(people, other, entity.second)
    new = {**entity.first, **entity.second}
    assert _read(row, new) == new


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", ENTITIES)
def test_concurrent_edits_lose_nothing(name: str) -> None:
    people, entity = make_people(), ENTITIES[name]
    row, new = entity.row(people), {**entity.first, **entity.second}
    old = _read(row, new)

    def change(values: Values) -> None:
        try:
            entity.edit(people, type(row)._default_manager.get(pk=row.pk), values)
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as threads:
        for _pair in range(PAIRS):
            entity.edit(people, type(row)._default_manager.get(pk=row.pk), old)
            list(threads.map(change, (entity.first, entity.second)))
            assert _read(row, new) == new


def test_edit_of_a_weight_does_not_open_a_closed_queue(people: People) -> None:
    stale = type(people.queue).objects.get(pk=people.queue.pk)
    queues.set_state(people.queue, "closed", by=people.ada, actor=PLATFORM, now=clock.now())
    ENTITIES["queue"].edit(people, stale, {"weight": 7})
    people.queue.refresh_from_db()
    assert (people.queue.state, people.queue.weight) == ("closed", 7)


def test_state_is_compared_with_the_present_one(people: People) -> None:
    """A stale row says open: closing and opening again is not skipped."""
    stale = type(people.queue).objects.get(pk=people.queue.pk)
    queues.set_state(people.queue, "closed", by=people.ada, actor=PLATFORM, now=clock.now())
    queues.set_state(stale, "open", by=people.ada, actor=PLATFORM, now=clock.now())
    people.queue.refresh_from_db()
    assert people.queue.state == "open"


def test_edit_of_a_person_keeps_a_new_password(people: People) -> None:
    stale = User.objects.get(pk=people.bob.pk)
    accounts.change_user(people.bob, {}, password="a-long-walk-home", actor=PLATFORM, now=clock.now())
    ENTITIES["person"].edit(people, stale, {"display_name": "Bob"})
    assert User.objects.get(pk=people.bob.pk).check_password("a-long-walk-home")


def test_edit_of_a_deleted_row_is_refused(people: People) -> None:
    row = clusters.create(name="gone", kind="simulated", config={}, actor=PLATFORM, now=clock.now())
    stale = type(row).objects.get(pk=row.pk)
    clusters.remove(row, actor=PLATFORM, now=clock.now())
    events = LoggedEvent.objects.count()
    with pytest.raises(NotFound):
        ENTITIES["cluster"].edit(people, stale, {"is_paused": True})
    assert LoggedEvent.objects.count() == events


def _one_goes(leave: Callable[[int], object], admins: Sequence[User]) -> bool:
    """Whether of two admins who are asked to go at the same time, one goes, and the other is kept."""

    def goes(user: User) -> bool:
        try:
            leave(user.pk)
        except Refused:
            return False
        finally:
            connection.close()
        return True

    with ThreadPoolExecutor(2) as threads:
        return sorted(threads.map(goes, admins)) == [False, True]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("values", [{"platform_role": ""}, {"is_active": False}])
def test_last_platform_admin_stays(values: Values) -> None:
    people = make_people()
    admins = User.objects.filter(pk__in=[people.ada.pk, people.alice.pk])

    def leave(pk: int) -> None:
        accounts.change_user(User.objects.get(pk=pk), values, password=None, **_acts())

    for _pair in range(PAIRS):
        admins.update(platform_role="admin", is_active=True)
        assert _one_goes(leave, (people.ada, people.alice))
        assert User.objects.filter(platform_role="admin", is_active=True).count() == 1


@pytest.mark.parametrize("is_removed", [False, True])
def test_disabled_admin_does_not_count_as_the_last_one(people: People, is_removed: bool) -> None:
    """Bob is an admin, too, but cannot sign in."""
    leave = partial(tenancy.remove_member, people.lab, people.alice.pk, **_acts())
    if not is_removed:
        leave = partial(tenancy.change_role, people.lab, people.alice.pk, "member", **_acts())
    tenancy.change_role(people.lab, people.bob.pk, "admin", **_acts())
    accounts.change_user(people.bob, {"is_active": False}, password=None, **_acts())
    with pytest.raises(Refused, match="no other active admin"):
        leave()
    accounts.change_user(people.bob, {"is_active": True}, password=None, **_acts())
    leave()
    assert not Membership.objects.filter(tenant=people.lab, user=people.alice, role="admin").exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_removed", [False, True])
def test_last_admin_of_a_tenant_stays(is_removed: bool) -> None:
    people = make_people()

    def leave(pk: int) -> None:
        if is_removed:
            tenancy.remove_member(people.lab, pk, **_acts())
        else:
            tenancy.change_role(people.lab, pk, "member", **_acts())

    for _pair in range(PAIRS):
        for user in (people.alice, people.bob):
            Membership.objects.update_or_create(
                tenant=people.lab,
                user=user,
                defaults={"role": "admin"},
                create_defaults={"role": "admin", "since": NOON},
            )
        assert _one_goes(leave, (people.alice, people.bob))
        assert Membership.objects.filter(tenant=people.lab, role="admin").count() == 1
