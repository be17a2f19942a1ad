"""OpenPAI's API: sign-in with a password, and who has access."""

from datetime import timedelta

import pytest
from rest_framework.test import APIClient
from tests.api.openpai import V1, V2, config, refused, send

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import ApiToken
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs.models import Job
from hekla.apps.signin.models import SecondFactor
from hekla.lib import clock


@pytest.fixture
def password(world):
    alice = world.people["alice"]
    accounts.change_user(alice, {}, password="correct horse", actor=PLATFORM, now=clock.now())
    return {"username": "alice", "password": "correct horse"}


@pytest.mark.parametrize(
    "address", [f"{V1}/authn/basic/login", f"{V2}/authn/basic/login", f"{V1}/token", f"{V2}/tokens"]
)
@pytest.mark.parametrize("form", [{"format": "json"}, {"content_type": "application/x-www-form-urlencoded"}])
def test_password_returns_a_token_with_expiry(password, address, form):
    sent = {**password, "expiration": 4000}
    text = "&".join(f"{name}={value}".replace(" ", "+") for name, value in sent.items())
    answer = APIClient().post(address, sent if "format" in form else text, **form)
    body = answer.json()
    assert (answer.status_code, body["user"], body["admin"]) == (200, "alice", False)
    token = ApiToken.objects.get()
    assert (token.name, token.expires_at - token.created_at) == ("OpenPAI", timedelta(seconds=4000))
    client = APIClient(HTTP_AUTHORIZATION=f"Bearer {body['token']}")
    assert client.get(f"{V2}/tokens/check").json()["username"] == "alice"
    assert LoggedEvent.objects.filter(kind="SignedIn").exists()
    assert client.delete(f"{V2}/authn/basic/logout").status_code == 200
    assert refused(client.get(f"{V2}/jobs")) == (401, "UnauthorizedUserError")


@pytest.mark.parametrize(
    "change", [{"password": "wrong"}, {"username": "nobody"}, {"username": "\0"}, {"password": ""}, {"username": ["a"]}]
)
def test_sign_in_error_does_not_reveal_which_field_is_wrong(password, change):
    answer = APIClient().post(f"{V2}/authn/basic/login", {**password, **change}, format="json")
    assert refused(answer) == (400, "IncorrectPasswordError")
    assert "user name or password" in answer.json()["message"]


@pytest.mark.parametrize("expiration", [59, 604_801, "soon", -1, 10**30, "00008640099"])
def test_token_expiry_is_limited(password, expiration):
    answer = APIClient().post(f"{V2}/authn/basic/login", {**password, "expiration": expiration}, format="json")
    assert refused(answer) == (400, "InvalidParametersError")


def test_password_is_refused_with_a_second_factor(world, password):
    SecondFactor.objects.create(
        user=world.people["alice"], secret=b"", created_at=clock.now(), confirmed_at=clock.now()
    )
    answer = APIClient().post(f"{V2}/authn/basic/login", password, format="json")
    assert refused(answer) == (403, "SecondFactorRequiredError")
    assert not ApiToken.objects.exists()


def test_password_guessing_is_locked_out(password, settings):
    settings.AXES_FAILURE_LIMIT = 3
    wrong = {**password, "password": "guess"}
    for _ in range(3):
        answer = APIClient().post(f"{V2}/authn/basic/login", wrong, format="json")
    late = APIClient().post(f"{V2}/authn/basic/login", password, format="json")
    assert refused(late) == (429, "TooManyRequestsError")
    assert answer.status_code in {400, 429}


def test_sign_ins_are_throttled(password, settings):
    settings.API_SIGN_INS_A_MINUTE = 2
    answers = [APIClient(REMOTE_ADDR="192.0.2.77").post(f"{V2}/tokens", password, format="json") for _ in range(5)]
    assert refused(answers[-1]) == (429, "TooManyRequestsError")


# Access.


@pytest.mark.parametrize("address", ["jobs", "jobs/alice~train", "virtual-clusters", "users", "nowhere"])
def test_requests_without_a_token_return_401(world, address):
    for client in (APIClient(), APIClient(HTTP_AUTHORIZATION="Bearer hk_wrong")):
        assert refused(client.get(f"{V2}/{address}")) == (401, "UnauthorizedUserError")


@pytest.mark.parametrize(
    "path", ["", "/config", "/ssh", "/events", "/job-attempts", "/attempts/0", "/job-attempts/healthz"]
)
def test_outsiders_get_404(alice, charlie, path):
    send(alice, config())
    assert refused(charlie.get(f"{V2}/jobs/alice~train{path}")) == (404, "NoJobError")


def test_outsiders_cannot_act(alice, charlie):
    send(alice, config())
    path = f"{V2}/jobs/alice~train"
    stop = charlie.put(f"{path}/executionType", {"value": "STOP"}, format="json")
    tag = charlie.put(f"{path}/tag", {"value": "x"}, format="json")
    assert [refused(stop), refused(tag)] == [(404, "NoJobError")] * 2
    assert charlie.get(f"{V2}/jobs").json() == []
    assert Job.objects.get().phase == "pending"


def test_unknown_addresses_get_openpai_errors(alice):
    assert refused(alice.get(f"{V2}/alerts")) == (404, "NoApiError")
    assert refused(alice.post(f"{V2}/virtual-clusters", {}, format="json")) == (405, "NoApiError")
