"""A page reads the person's rights once. The next request reads them again."""

from collections.abc import Callable

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from tests.apps.conftest import People

from hekla.apps.accounts.models import User
from hekla.apps.tenancy.models import Membership

As = Callable[[User], Client]
_MOST_QUERIES = 12


@pytest.mark.parametrize("copies", [False, True])
def test_the_form_of_a_job_reads_rights_once_and_needs_few_queries(people: People, as_: As, *, copies: bool) -> None:
    query, client = {"clone": str(people.submit("one").uid)} if copies else {}, as_(people.alice)
    client.get(reverse("accounts:login_sessions"))  # the session records its last use once a minute
    with CaptureQueriesContext(connection) as queries:
        assert client.get(reverse("jobs:submit"), query).status_code == 200
    assert sum("joined.role" in one["sql"] for one in queries) == 1
    assert len(queries) <= _MOST_QUERIES


def test_a_right_that_ends_is_gone_at_the_next_request(people: People, as_: As) -> None:
    page, client = reverse("jobs:detail", args=[people.submit("one").uid]), as_(people.bob)
    assert client.get(page).status_code == 200
    Membership.objects.filter(user=people.bob).delete()
    assert client.get(page).status_code == 404
