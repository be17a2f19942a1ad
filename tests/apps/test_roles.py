"""The tables of roles on pages equal the permissions in code."""

import pytest
from django.urls import reverse

from hekla.apps.accounts.roles import (
    BY_DEPARTMENT_ROLE,
    BY_PLATFORM_ROLE,
    BY_TENANT_ROLE,
    DEPARTMENT_TABLE,
    PERMISSION_LABELS,
    PLATFORM_TABLE,
    TENANT_TABLE,
    Permission,
)

TABLES = {
    "tenant": (TENANT_TABLE, BY_TENANT_ROLE),
    "department": (DEPARTMENT_TABLE, BY_DEPARTMENT_ROLE),
    "platform": (PLATFORM_TABLE, BY_PLATFORM_ROLE),
}


def test_every_permission_has_a_label_and_a_table_row():
    assert set(PERMISSION_LABELS) == set(Permission)
    assert {row[0] for table, _permissions in TABLES.values() for row in table.rows} == set(Permission)


@pytest.mark.parametrize(("table", "permissions"), TABLES.values(), ids=TABLES)
def test_table_marks_equal_the_permissions(table, permissions):
    for permission, _words, marks in table.rows:
        assert [is_marked for _role, is_marked in marks] == [permission in allowed for allowed in permissions.values()]


def test_who_may_submit_to_a_tenant_may_see_it():
    """Submission checks only the first."""
    for permissions in (BY_TENANT_ROLE, BY_DEPARTMENT_ROLE):
        assert all(
            Permission.SEE_TENANT in allowed for allowed in permissions.values() if Permission.SUBMIT_JOBS in allowed
        )
    assert all(
        Permission.SEE_EVERYTHING in allowed
        for allowed in BY_PLATFORM_ROLE.values()
        if Permission.SUBMIT_JOBS in allowed
    )


@pytest.mark.parametrize(("name", "cards"), [("ada", 3), ("alice", 1), ("charlie", 1)])
def test_admins_see_the_roles_that_they_grant(people, as_, name, cards):
    page = as_(getattr(people, name)).get(reverse("roles")).content.decode()
    assert page.count('id="roles-') == cards * 2  # the card and its title
    assert "Submit jobs for the tenant" in page
    assert ("Add and edit people" in page) == (name == "ada")


def test_other_users_are_refused(people, as_):
    answer = as_(people.bob).get(reverse("roles"))
    assert (answer.status_code, "Only tenant admins" in answer.content.decode()) == (403, True)


def test_roles_over_rest(people, as_):
    roles = as_(people.ada).get(reverse("api:v1:roles")).json()
    assert {(one["place"], one["role"]): set(one["permissions"]) for one in roles} == {
        **{("tenant", role): permissions for role, permissions in BY_TENANT_ROLE.items()},
        **{("department", role): permissions for role, permissions in BY_DEPARTMENT_ROLE.items()},
        **{("platform", role): permissions for role, permissions in BY_PLATFORM_ROLE.items()},
    }
    assert {one["place"] for one in as_(people.alice).get(reverse("api:v1:roles")).json()} == {"tenant"}
