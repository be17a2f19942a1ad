"""The table of roles: what people read is what the code asks."""

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


def test_every_permission_has_words_and_stands_in_a_table():
    assert set(PERMISSION_LABELS) == set(Permission)
    assert {row[0] for table, _held in TABLES.values() for row in table.rows} == set(Permission)


@pytest.mark.parametrize(("table", "held"), TABLES.values(), ids=TABLES)
def test_a_mark_is_what_the_code_asks(table, held):
    for permission, _words, marks in table.rows:
        assert [may for _role, may in marks] == [permission in allowed for allowed in held.values()]


@pytest.mark.parametrize(("name", "cards"), [("ada", 3), ("alice", 1), ("charlie", 1)])
def test_who_gives_roles_sees_those_that_they_give(people, as_, name, cards):
    page = as_(getattr(people, name)).get(reverse("roles")).content.decode()
    assert page.count('id="roles-') == cards * 2  # the card and its title
    assert "Submit jobs for the tenant" in page
    assert ("Add and edit people" in page) == (name == "ada")


def test_who_gives_none_is_told_whose_table_it_is(people, as_):
    answer = as_(people.bob).get(reverse("roles"))
    assert (answer.status_code, "Only tenant admins" in answer.content.decode()) == (403, True)


def test_programs_read_the_same_table(people, as_):
    told = as_(people.ada).get(reverse("api:v1:roles")).json()
    assert {(one["place"], one["role"]): set(one["permissions"]) for one in told} == {
        **{("tenant", role): held for role, held in BY_TENANT_ROLE.items()},
        **{("department", role): held for role, held in BY_DEPARTMENT_ROLE.items()},
        **{("platform", role): held for role, held in BY_PLATFORM_ROLE.items()},
    }
    assert {one["place"] for one in as_(people.alice).get(reverse("api:v1:roles")).json()} == {"tenant"}
