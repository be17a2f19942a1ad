"""Login sessions read their people by a backend of their own; earlier sessions go on."""

from django.contrib.auth import BACKEND_SESSION_KEY
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People

from hekla.apps.accounts import services
from hekla.apps.accounts.people_by_id import BACKEND, PeopleById
from hekla.apps.event_log.services import PLATFORM
from hekla.lib import clock

EARLIER = "django.contrib.auth.backends.ModelBackend"
PASSWORD = "a-long-walk-home"


def test_people_sign_in_to_sessions_of_this_backend(people: People) -> None:
    services.create_user(username="mia", password=PASSWORD, actor=PLATFORM, now=clock.now())
    client = Client()
    client.post(reverse("accounts:sign_in"), {"username": "mia", "password": PASSWORD})
    assert client.session[BACKEND_SESSION_KEY] == BACKEND
    assert client.get(reverse("home")).status_code == 200
    assert PeopleById().authenticate(None, username="mia", password=PASSWORD) is None


def test_sessions_from_before_it_stay_and_end_with_the_person(people: People) -> None:
    for backend in (EARLIER, BACKEND):
        client = Client()
        client.force_login(people.bob, backend=backend)
        assert client.get(reverse("jobs:list")).status_code == 200
    people.bob.is_active = False
    people.bob.save()
    assert PeopleById().get_user(people.bob.pk) is None
    assert client.get(reverse("jobs:list")).status_code == 302
