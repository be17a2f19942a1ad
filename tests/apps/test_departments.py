"""Departments: their heads are admins of each of their tenants, and see what all of them hold."""

import re

import pytest
from django.urls import reverse
from tests.apps.shared_people import db, people, shared_people

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

__all__ = ["db", "people", "shared_people"]


@pytest.fixture
def head(people) -> User:
    """Dora is the head of the department of lab, and a member of no tenant."""
    dora = accounts.create_user(username="dora", password=None, actor=PLATFORM, now=clock.now())
    create_department("science", heads=[dora], tenants=[people.lab])
    return dora


def create_department(slug: str, **more) -> Department:
    return departments.create(slug=slug, name=slug.title(), **more, actor=PLATFORM, now=clock.now())


def change_department(slug: str, **more) -> None:
    department = Department.objects.get(slug=slug)
    departments.change(department, {}, **more, actor=PLATFORM, now=clock.now())


def test_head_has_admin_rights_in_their_tenants(people, head):
    for permission in Permission:
        may = permission in BY_TENANT_ROLE["admin"] or permission is Permission.SEE_DEPARTMENT
        assert selectors.may(head, people.lab.pk, permission) == may
        assert not selectors.may(head, people.other.pk, permission)
        assert selectors.where(head, permission) == ([people.lab.pk] if may else [])


def test_head_sees_only_their_tenants_and_queues(people, head):
    for name, tenant in (("labs", people.lab), ("not", people.other)):
        queue_services.create(cluster=people.cluster, name=name, tenants=[tenant], actor=PLATFORM, now=clock.now())
    assert [tenant.slug for tenant in selectors.visible_to(head)] == ["lab"]
    assert {queue.name for queue in queues.visible_to(head)} == {"default", "labs"}
    assert [one.slug for one in selectors.departments_of(people.alice)] == []


def test_rights_end_with_headship_and_tenant_membership(people, head):
    change_department("science", tenants=[people.other])
    assert [tenant.slug for tenant in selectors.own(head)] == ["other"]
    change_department("science", heads=[])
    assert not selectors.own(head).exists()


def test_an_inactive_tenant_or_head_has_no_rights(people, head):
    people.lab.is_active = False
    people.lab.save()
    assert not selectors.own(head).exists()
    people.lab.is_active, head.is_active = True, False
    people.lab.save()
    assert not selectors.may(head, people.lab.pk, Permission.SEE_TENANT)


def test_own_tenant_of_a_head_is_chosen_first(people, head):
    tenancy.add_member(people.other, head, "member", actor=PLATFORM, now=clock.now())
    assert selectors.chosen(selectors.rights(head).tenants, "").slug == "other"
    assert selectors.chosen(selectors.rights(head).tenants, "lab").slug == "lab"


def test_role_snapshots_list_effective_roles(people, head):
    tenancy.add_member(people.other, head, "member", actor=PLATFORM, now=clock.now())
    found = selectors.role_snapshots([head.pk, people.ada.pk, people.alice.pk])
    assert found[head.pk] == RoleSnapshot(
        "", frozenset({(people.lab.pk, "department admin"), (people.other.pk, "member")})
    )
    assert found[people.ada.pk].platform_role == "admin"
    assert found[people.alice.pk].roles == {(people.lab.pk, "admin")}
    Tenant.objects.update(is_active=False)
    User.objects.filter(pk=people.alice.pk).update(is_active=False)
    snapshots = selectors.role_snapshots([head.pk, people.alice.pk])
    assert snapshots == {head.pk: RoleSnapshot("", frozenset())}
    assert selectors.role_snapshots([]) == {}


def test_a_tenant_belongs_to_one_department_at_most(people, head):
    with pytest.raises(Invalid, match=r"another department.*: lab"):
        create_department("arts", tenants=[people.lab])
    assert not Department.objects.filter(slug="arts").exists()
    with pytest.raises(Refused, match="“science” is used"):
        create_department("science")


def test_event_log_records_heads_and_tenants(people, head):
    change_department("science", heads=[people.bob], tenants=[])
    changes = LoggedEvent.objects.filter(kind="DepartmentChanged").last().payload["changes"]
    assert changes["heads"] == {"old": ["dora"], "new": ["bob"]}
    assert changes["tenants"] == {"old": ["lab"], "new": []}
    tenant_event = LoggedEvent.objects.filter(kind="TenantChanged", tenant_id=people.lab.pk).last()
    assert tenant_event.payload["changes"]["department"] == {"old": "science", "new": ""}


def test_pages_create_change_and_show_a_department(people, as_):
    ada = as_(people.ada)
    fields = {"name": "Science", "slug": "science", "heads": "bob, nobody", "tenants": [people.lab.pk]}
    assert "No active person has the name: nobody" in ada.post(reverse("departments:create"), fields).content.decode()
    made = ada.post(reverse("departments:create"), {**fields, "heads": "bob"}, follow=True).content.decode()
    assert (">Lab</a>" in made, "Bob" in made) == (True, True)
    assert "Department: Science" in as_(people.alice).get(reverse("tenancy:detail", args=["lab"])).content.decode()
    edit = reverse("departments:edit", args=["science"])
    assert 'value="bob"' in ada.get(edit).content.decode()
    assert ada.post(edit, {"name": "Sciences", "heads": "", "tenants": []}).status_code == 302
    assert (selectors.heads(Department.objects.get()).count(), Department.objects.get().name) == (0, "Sciences")


def test_department_totals_exclude_simulations(people, head, as_):
    job = people.submit("real")
    pods = {"task": "main", "attempt": 1, "version": 1, "created_at": clock.now(), "phase": "running", "node": "n1"}
    Pod.objects.create(job=job, index=0, slot=1, address="127.0.0.1", **pods)
    people.submit("waits")
    show = reverse("api:v1:department", args=["science"])
    assert as_(head).get(show).json()["together"] == {"slug": "", "running": 0, "waiting": 0, "held": {}}
    Cluster.objects.update(kind="local")
    Job.objects.filter(name="real").update(phase="running")
    body = as_(head).get(show).json()
    assert body["tenants"] == [{"slug": "lab", "running": 1, "waiting": 1, "held": {"cpu": "1", "pods": "1"}}]
    assert body["together"] == {**body["tenants"][0], "slug": ""}
    assert "1 CPU" in as_(head).get(reverse("departments:detail", args=["science"])).content.decode()


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ["arts", "lab", "other"]),
        ("?sort=-name", ["other", "lab", "arts"]),
        ("?sort=-members", ["lab", "other", "arts"]),
        ("?sort=-pending&q=a", ["lab", "arts"]),
        ("?sort=allocated", ["arts", "lab", "other"]),
        ("?q=nowhere", []),
    ],
)
def test_tenants_are_sorted_and_searched_by_the_query(people, head, as_, query, expected):
    tenancy.create(slug="arts", name="Arts", actor=PLATFORM, now=clock.now())
    Tenant.objects.update(department=Department.objects.get())
    Cluster.objects.update(kind="local")
    people.submit("waits")
    page = as_(head).get(reverse("departments:detail", args=["science"]) + query).content.decode()
    assert re.findall(r'<th scope="row"><a href="/tenants/(\w+)', page) == expected
    assert ('<tfoot><tr><th scope="row">Total</th><td class="number" data-label="Members">' in page) == (
        "q=" not in query
    )


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"slug": "new"}, "slug"),
        ({"slug": "a b"}, "slug"),
        ({"heads": ["nobody"]}, "heads"),
        ({"tenants": ["nowhere"]}, "tenants"),
        ({"tenants": ["lab"]}, "tenants"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_wrong_departments_are_refused_by_field(people, head, as_, fields, path):
    document = {"slug": "arts", "name": "Arts", **fields}
    answer = as_(people.ada).post(reverse("api:v1:departments"), document, content_type="application/json")
    assert answer.status_code == 400
    assert {error["path"].partition(".")[0] for error in answer.json()["errors"]} == {path}


def test_list_of_tenants_is_filtered_by_department(people, head, as_):
    page = as_(people.ada).get(reverse("tenancy:list"))
    assert '<option value="science">Science</option>' in page.content.decode()
    found = as_(people.ada).get(reverse("tenancy:list"), {"department": "science"}).context["tenants"].records
    assert [tenant.slug for tenant in found] == ["lab"]
    assert 'name="department"' not in as_(people.charlie).get(reverse("tenancy:list")).content.decode()
