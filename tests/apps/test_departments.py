"""Departments: their heads are admins of each of their tenants, and see what all of them hold."""

import re

import pytest
from django.urls import reverse

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import BY_TENANT_ROLE, Permission
from hekla.apps.clusters.models import Cluster
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.queues import selectors as queues
from hekla.apps.queues import services as queue_services
from hekla.apps.tenancy import departments, selectors
from hekla.apps.tenancy import services as tenancy
from hekla.apps.tenancy.models import Department, Tenant
from hekla.apps.tenancy.selectors import RoleSnapshot
from hekla.domain.errors import Invalid, Refused
from hekla.lib import clock


@pytest.fixture
def head(people) -> User:
    """Dora heads the department of the lab, and is a member of nothing."""
    dora = accounts.create_user(username="dora", password=None, actor=PLATFORM, now=clock.now())
    make("science", heads=[dora], tenants=[people.lab])
    return dora


def make(slug: str, **more) -> Department:
    return departments.create(slug=slug, name=slug.title(), **more, actor=PLATFORM, now=clock.now())


def change(slug: str, **more) -> None:
    department = Department.objects.get(slug=slug)
    departments.change(department, {}, **more, actor=PLATFORM, now=clock.now())


def test_a_head_may_in_their_tenants_what_an_admin_may(people, head):
    for permission in Permission:
        may = permission in BY_TENANT_ROLE["admin"] or permission is Permission.SEE_DEPARTMENT
        assert selectors.may(head, people.lab.pk, permission) == may
        assert not selectors.may(head, people.other.pk, permission)
        assert selectors.where(head, permission) == ([people.lab.pk] if may else [])


def test_a_head_sees_their_tenants_and_those_queues_and_nothing_else(people, head):
    for name, tenant in (("labs", people.lab), ("not", people.other)):
        queue_services.create(cluster=people.cluster, name=name, tenants=[tenant], actor=PLATFORM, now=clock.now())
    assert [tenant.slug for tenant in selectors.visible_to(head)] == ["lab"]
    assert {queue.name for queue in queues.visible_to(head)} == {"default", "labs"}
    assert [one.slug for one in selectors.departments_of(people.alice)] == []


def test_rights_end_with_the_headship_and_when_a_tenant_leaves(people, head):
    change("science", tenants=[people.other])
    assert [tenant.slug for tenant in selectors.own(head)] == ["other"]
    change("science", heads=[])
    assert not selectors.own(head).exists()


def test_an_inactive_tenant_or_head_has_no_rights(people, head):
    people.lab.is_active = False
    people.lab.save()
    assert not selectors.own(head).exists()
    people.lab.is_active, head.is_active = True, False
    people.lab.save()
    assert not selectors.may(head, people.lab.pk, Permission.SEE_TENANT)


def test_a_head_works_for_the_tenant_that_they_are_a_member_of(people, head):
    tenancy.add_member(people.other, head, "member", actor=PLATFORM, now=clock.now())
    assert selectors.chosen(selectors.rights(head).tenants, "").slug == "other"
    assert selectors.chosen(selectors.rights(head).tenants, "lab").slug == "lab"


def test_a_standing_is_all_roles_where_anything_may_be_done(people, head):
    tenancy.add_member(people.other, head, "member", actor=PLATFORM, now=clock.now())
    found = selectors.standings([head.pk, people.ada.pk, people.alice.pk])
    assert found[head.pk] == RoleSnapshot(
        "", frozenset({(people.lab.pk, "department admin"), (people.other.pk, "member")})
    )
    assert found[people.ada.pk].platform_role == "admin"
    assert found[people.alice.pk].roles == {(people.lab.pk, "admin")}
    Tenant.objects.update(is_active=False)
    User.objects.filter(pk=people.alice.pk).update(is_active=False)
    left = selectors.standings([head.pk, people.alice.pk])
    assert left == {head.pk: RoleSnapshot("", frozenset())}
    assert selectors.standings([]) == {}


def test_a_tenant_belongs_to_one_department_at_most(people, head):
    with pytest.raises(Invalid, match=r"another department.*: lab"):
        make("arts", tenants=[people.lab])
    assert not Department.objects.filter(slug="arts").exists()
    with pytest.raises(Refused, match="“science” is used"):
        make("science")


def test_the_log_tells_who_came_and_went(people, head):
    change("science", heads=[people.bob], tenants=[])
    told = LoggedEvent.objects.filter(kind="DepartmentChanged").last().payload["changes"]
    assert told["heads"] == {"old": ["dora"], "new": ["bob"]}
    assert told["tenants"] == {"old": ["lab"], "new": []}
    of_the_tenant = LoggedEvent.objects.filter(kind="TenantChanged", tenant_id=people.lab.pk).last()
    assert of_the_tenant.payload["changes"]["department"] == {"old": "science", "new": ""}


def test_pages_make_change_and_show_a_department(people, as_):
    ada = as_(people.ada)
    wish = {"name": "Science", "slug": "science", "heads": "bob, nobody", "tenants": [people.lab.pk]}
    assert "No active person has the name: nobody" in ada.post(reverse("departments:create"), wish).content.decode()
    made = ada.post(reverse("departments:create"), {**wish, "heads": "bob"}, follow=True).content.decode()
    assert (">Lab</a>" in made, "Bob" in made) == (True, True)
    assert "Department: Science" in as_(people.alice).get(reverse("tenancy:detail", args=["lab"])).content.decode()
    edit = reverse("departments:edit", args=["science"])
    assert 'value="bob"' in ada.get(edit).content.decode()
    assert ada.post(edit, {"name": "Sciences", "heads": "", "tenants": []}).status_code == 302
    assert (selectors.heads(Department.objects.get()).count(), Department.objects.get().name) == (0, "Sciences")


def test_a_head_sees_what_their_tenants_hold_on_real_machines(people, head, as_):
    job = people.submit("real")
    pods = {"task": "main", "attempt": 1, "version": 1, "created_at": clock.now(), "phase": "running", "node": "n1"}
    Pod.objects.create(job=job, index=0, slot=1, address="127.0.0.1", **pods)
    people.submit("waits")
    show = reverse("api:v1:department", args=["science"])
    assert as_(head).get(show).json()["together"] == {"slug": "", "running": 0, "waiting": 0, "held": {}}
    Cluster.objects.update(kind="local")
    Job.objects.filter(name="real").update(phase="running")
    told = as_(head).get(show).json()
    assert told["tenants"] == [{"slug": "lab", "running": 1, "waiting": 1, "held": {"cpu": "1", "pods": "1"}}]
    assert told["together"] == {**told["tenants"][0], "slug": ""}
    assert "1 CPU" in as_(head).get(reverse("departments:detail", args=["science"])).content.decode()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("", ["arts", "lab", "other"]),
        ("?sort=-name", ["other", "lab", "arts"]),
        ("?sort=-members", ["lab", "other", "arts"]),
        ("?sort=-pending&q=a", ["lab", "arts"]),
        ("?sort=allocated", ["arts", "lab", "other"]),
        ("?q=nowhere", []),
    ],
)
def test_its_tenants_are_sorted_and_searched_by_the_address(people, head, as_, words, expected):
    tenancy.create(slug="arts", name="Arts", actor=PLATFORM, now=clock.now())
    Tenant.objects.update(department=Department.objects.get())
    Cluster.objects.update(kind="local")
    people.submit("waits")
    page = as_(head).get(reverse("departments:detail", args=["science"]) + words).content.decode()
    assert re.findall(r'<th scope="row"><a href="/tenants/(\w+)', page) == expected
    assert ('<tfoot><tr><th scope="row">Total</th><td class="number" data-label="Members">' in page) == (
        "q=" not in words
    )


@pytest.mark.parametrize(
    ("wish", "path"),
    [
        ({"slug": "new"}, "slug"),
        ({"slug": "a b"}, "slug"),
        ({"heads": ["nobody"]}, "heads"),
        ({"tenants": ["nowhere"]}, "tenants"),
        ({"tenants": ["lab"]}, "tenants"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_wrong_departments_are_refused_by_field(people, head, as_, wish, path):
    send = {"slug": "arts", "name": "Arts", **wish}
    answer = as_(people.ada).post(reverse("api:v1:departments"), send, content_type="application/json")
    assert answer.status_code == 400
    assert {error["path"].partition(".")[0] for error in answer.json()["errors"]} == {path}
