"""A change of the console's secret key: stored secrets are re-encrypted, and sessions stay under control."""

from collections.abc import Callable
from io import StringIO
from typing import Any
from uuid import uuid4

import pytest
from asgiref.sync import async_to_sync
from django.apps import apps
from django.conf import LazySettings
from django.contrib.sessions.models import Session
from django.core.management import CommandError, call_command
from django.db import models
from django.test import Client
from tests.apps.conftest import People, make_people
from tests.support.websocket import Socket

from hekla.apps.clusters import encryption as clusters
from hekla.apps.clusters.models import StoredClusterKey, StoredMetricsToken
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.invitations import encryption as letters
from hekla.apps.invitations import services as invitations
from hekla.apps.invitations.models import InvitationMail
from hekla.apps.login_sessions import selectors, services
from hekla.apps.notifications import encryption as webhooks
from hekla.apps.notifications.models import Preference
from hekla.apps.secrets import encryption as job_secrets
from hekla.apps.secrets.models import JobSecrets
from hekla.apps.signin import encryption as factors
from hekla.apps.signin.models import SecondFactor
from hekla.launcher.management.commands.reencrypt import COLUMNS
from hekla.lib import clock
from hekla.live.routing import application as websockets
from hekla.project.config import Config

As = Callable[[Any], Client]
NOT_SECRET = {
    ("signin.SecurityKey", "credential_id"),
    ("signin.SecurityKey", "public_key"),
    ("cycle_records.CycleRecord", "data"),
    ("policy_lab.LabTrace", "content"),
}


def rotate_key(settings: LazySettings) -> None:
    """A new secret key; the former one becomes a fallback."""
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "the-new-secret-key"


def reencrypt() -> str:
    output = StringIO()
    call_command("reencrypt", stdout=output)
    return output.getvalue()


def store_secrets(people: People) -> Callable[[], list[object]]:
    """One row with each kind of secret. Returns a function that decrypts them all."""
    now = clock.now()
    secret, encrypted = webhooks.make_secret()
    invitation = invitations.invite(people.lab, role="viewer", by=people.ada, now=now)[0]
    key = StoredClusterKey.objects.create(
        cluster=people.cluster, ciphertext=clusters.COLUMN.encrypt("key"), server="https://k", added_at=now
    )
    rows: dict[str, Any] = {
        "webhook": Preference.objects.create(user=people.alice, webhook_secret=encrypted),
        "empty": Preference.objects.create(user=people.bob),
        "factor": SecondFactor.objects.create(
            user=people.alice, secret=factors.COLUMN.encrypt("factor"), created_at=now
        ),
        "job": JobSecrets.objects.create(job_uid=uuid4(), values=job_secrets.encrypt({"a": "b"})),
        "letter": InvitationMail.objects.create(
            invitation=invitation, link=letters.COLUMN.encrypt("link"), language="en", due_at=now
        ),
        "cluster": key,
        "metrics": StoredMetricsToken.objects.create(
            cluster=people.cluster, ciphertext=clusters.METRICS_TOKENS.encrypt("token"), added_at=now
        ),
    }

    def decrypt() -> list[object]:
        for row in rows.values():
            row.refresh_from_db()
        return [
            webhooks.COLUMN.decrypt(rows["webhook"].webhook_secret) == secret,
            factors.COLUMN.decrypt(rows["factor"].secret),
            job_secrets.decrypt(rows["job"].values),
            letters.COLUMN.decrypt(rows["letter"].link),
            clusters.COLUMN.decrypt(rows["cluster"].ciphertext),
            clusters.METRICS_TOKENS.decrypt(rows["metrics"].ciphertext),
            bytes(rows["empty"].webhook_secret),
        ]

    return decrypt


ALL = [True, "factor", {"a": "b"}, "link", "key", "token", b""]


def test_former_key_can_go_after_reencryption(people: People, settings: LazySettings) -> None:
    decrypt = store_secrets(people)
    rotate_key(settings)
    assert decrypt() == ALL
    assert reencrypt().splitlines() == [
        "Cluster credentials: 1 re-encrypted, 0 up to date, 0 unreadable",
        "Metrics tokens of clusters: 1 re-encrypted, 0 up to date, 0 unreadable",
        "Job secrets: 1 re-encrypted, 0 up to date, 0 unreadable",
        "Authenticator apps: 1 re-encrypted, 0 up to date, 0 unreadable",
        "Webhook secrets: 1 re-encrypted, 1 up to date, 0 unreadable",
        "Secrets of alert webhooks: 0 re-encrypted, 0 up to date, 0 unreadable",
        "Invitation links: 1 re-encrypted, 0 up to date, 0 unreadable",
        "Secrets of tools: 0 re-encrypted, 0 up to date, 0 unreadable",
        "Sessions: 0 signed again",
    ]
    settings.SECRET_KEY_FALLBACKS = []
    assert decrypt() == ALL
    again = reencrypt()
    assert " 1 re-encrypted" not in again


def test_unreadable_secrets_are_named_and_stay(people: People, settings: LazySettings) -> None:
    store_secrets(people)
    former = settings.SECRET_KEY
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "the-new-secret-key", []
    with pytest.raises(CommandError, match=r"keys in the settings: clusters\.StoredClusterKey"):
        reencrypt()
    settings.SECRET_KEY_FALLBACKS = [former]
    assert "Cluster credentials: 1 re-encrypted" in reencrypt()


def test_many_rows_are_reencrypted_in_batches(people: People, settings: LazySettings, monkeypatch: Any) -> None:
    monkeypatch.setattr("hekla.apps.ciphers._BATCH", 2)
    for _ in range(5):
        JobSecrets.objects.create(job_uid=uuid4(), values=job_secrets.encrypt({"a": "b"}))
    rotate_key(settings)
    assert "Job secrets: 5 re-encrypted" in reencrypt()


def test_every_encrypted_column_is_known() -> None:
    known = {(column.model, column.name) for column in COLUMNS.values()} | NOT_SECRET
    found = {
        (model._meta.label, field.name)
        for model in apps.get_models()
        if model.__module__.startswith("hekla.")
        for field in model._meta.get_fields()
        if isinstance(field, models.BinaryField)
    }
    assert found == known


def is_valid(client: Client) -> bool:
    return client.get("/").status_code == 200


def test_session_survives_a_rotation(people: People, as_: As, settings: LazySettings) -> None:
    used, idle = as_(people.alice), as_(people.alice)
    rotate_key(settings)
    assert is_valid(used)
    assert "Sessions: 1 signed again" in reencrypt()
    assert "Sessions: 0 signed again" in reencrypt()
    settings.SECRET_KEY_FALLBACKS = []
    assert is_valid(used)
    assert is_valid(idle)


def test_session_of_an_unknown_key_or_an_old_password_is_over(people: People, as_: As, settings: LazySettings) -> None:
    old_password = as_(people.bob)
    people.bob.set_password("a-long-walk-home")
    people.bob.save(update_fields=["password"])
    client = as_(people.alice)
    rotate_key(settings)
    assert not is_valid(old_password)
    settings.SECRET_KEY_FALLBACKS = []
    assert "Sessions: 0 signed again" in reencrypt()
    assert not is_valid(client)


def test_sign_out_everywhere_reaches_sessions_of_the_former_key(
    people: People, as_: As, settings: LazySettings
) -> None:
    browsers = [as_(people.alice) for _ in range(3)]
    assert all(is_valid(client) for client in browsers)
    rotate_key(settings)
    assert is_valid(browsers[0])
    assert len(selectors.of(people.alice, now=clock.now())) == 3
    assert services.end_all(people.alice, by=people.ada, now=clock.now()) == 3
    assert not any(is_valid(client) for client in browsers)
    assert LoggedEvent.objects.filter(kind="OtherSessionsRevoked").get().payload["browsers"] == 3


@pytest.mark.django_db(transaction=True)
def test_open_page_connects_again_after_a_rotation(settings: LazySettings) -> None:
    people, client = make_people(), Client()
    client.force_login(people.alice, backend="django.contrib.auth.backends.ModelBackend")
    key = client.session.session_key or ""
    rotate_key(settings)
    assert async_to_sync(_connect)(key)
    assert Session.objects.filter(pk=key).exists()
    settings.SECRET_KEY_FALLBACKS = []
    assert not async_to_sync(_connect)(key)


async def _connect(session_key: str) -> bool:
    cookie = f"hekla_session={session_key}".encode()
    headers = [(b"cookie", cookie), (b"origin", b"http://localhost"), (b"host", b"localhost")]
    socket = Socket(websockets, "/ws/live/?view=jobs", None, headers=headers)
    del socket.scope["user"]  # comes from the session
    await socket.open()
    is_open = (await socket.receive_output(5))["type"] == "websocket.send"
    if is_open:
        await socket.leave()
    return is_open


def test_former_keys_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEKLA_SECRET_KEY_FALLBACKS", "former-key, oldest-key")
    assert Config().former_keys == ["former-key", "oldest-key"]
