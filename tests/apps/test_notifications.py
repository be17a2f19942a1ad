"""Notifications about jobs: chosen events, delivered once, on the page, by mail and by webhook, and never lost."""

import hashlib
import hmac
import json
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from threading import Event, Thread
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people
from tests.support.markup import tidy
from tests.support.receivers import Hook, Mailbox, mail_server, receiver

from hekla.apps.accounts.models import User
from hekla.apps.event_log.services import CONTROLLER, unit_of_work
from hekla.apps.jobs.models import Job
from hekla.apps.jobs.services.telling import tell
from hekla.apps.notifications import addresses, labels, outgoing, selectors, services
from hekla.apps.notifications.choices import Moment
from hekla.apps.notifications.models import Delivery, Notification, NotificationCursor, Preference
from hekla.apps.notifications.services import sending
from hekla.apps.tenancy import services as tenancy
from hekla.domain import events
from hekla.domain.errors import Invalid, Refused
from hekla.domain.phases import JobPhase
from hekla.lib import clock
from hekla.pages.notifications import rows

__all__ = ["db", "people", "shared_people"]
As = Callable[[User], Client]
ALL = ["started", "ended", "failed", "waits", "evicted", "deleting"]


def preferences(**changes: Any) -> dict[str, Any]:
    plain = {"moments": ALL, "channels": ["page"], "long_wait_minutes": 30, "mail": "", "is_digest": False}
    return {**plain, "webhook_url": "", **changes}


def choose(people: People, **changes: Any) -> str:
    """Alice chooses the usual preferences with these changes."""
    return services.choose(people.alice, preferences(**changes), now=clock.now())


def record_phase(job: Job, new: str, **more: Any) -> None:
    with unit_of_work():
        event = events.JobPhaseChanged(old=JobPhase(job.phase), new=JobPhase(new), **more)
        tell(job, event, actor=CONTROLLER, now=clock.now())


def record_evictions(job: Job, *pods: int) -> None:
    now = clock.now()
    with unit_of_work():
        for index in pods:
            event = events.PodEvicted(task="main", index=index, attempt=1, action="reclaim")
            tell(job, event, actor=CONTROLLER, now=now)


def sentences_for(user: User) -> list[str]:
    return [labels.sentence(one) for one in Notification.objects.filter(user=user).order_by("pk")]


@pytest.fixture
def job(people: People) -> Job:
    services.follow(now=clock.now())  # the reader starts here
    return people.submit("train")


@pytest.fixture
def mailbox(settings: Any) -> Iterator[Mailbox]:
    with mail_server() as box:
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT, settings.EMAIL_USE_TLS = "127.0.0.1", box.port, False
        settings.MAIL_IS_SET_UP = True
        yield box


@pytest.fixture
def hook(settings: Any) -> Iterator[Hook]:
    settings.WEBHOOKS_MAY_BE_PRIVATE = True
    with receiver() as found:
        yield found


@pytest.mark.parametrize(
    ("moment", "record", "sentence"),
    [
        ("started", lambda job: record_phase(job, "running"), "train is running."),
        ("ended", lambda job: record_phase(job, "completed", message="All done."), "train: Completed. All done."),
        ("failed", lambda job: record_phase(job, "failed", message="No luck."), "train failed. No luck."),
        ("evicted", lambda job: record_evictions(job, 0, 1), "2 pods of train are being evicted."),
    ],
)
def test_only_chosen_events_notify(
    people: People, job: Job, moment: str, record: Callable[[Job], None], sentence: str
) -> None:
    choose(people, moments=[moment])
    record(job)
    record_phase(job, "restarting")
    services.follow(now=clock.now())
    assert sentences_for(people.alice) == [sentence]
    choose(people, moments=[one for one in ALL if one != moment])
    record(job)
    services.follow(now=clock.now())
    assert sentences_for(people.alice) == [sentence]


def test_default_preferences(people: People, job: Job) -> None:
    for phase in ("running", "failed"):
        record_phase(job, phase)
    services.follow(now=clock.now())
    assert sentences_for(people.alice) == ["train failed."]
    assert not Delivery.objects.exists()


def test_rereading_the_event_log_does_not_repeat_notifications(people: People, job: Job) -> None:
    number = NotificationCursor.objects.get().number
    record_phase(job, "failed")
    record_evictions(job, 0)
    for _ in range(3):
        NotificationCursor.objects.update(number=number)  # as after a crash
        services.follow(now=clock.now())
    assert len(sentences_for(people.alice)) == 2


def test_events_before_the_first_reading_do_not_notify(people: People) -> None:
    job = people.submit("old")
    record_phase(job, "failed")
    services.follow(now=clock.now())
    assert sentences_for(people.alice) == []


def test_job_preferences_override_defaults(people: People, job: Job) -> None:
    services.choose_for_job(people.alice, job, {"moments": [], "channels": ["page"]})
    services.choose_for_job(people.bob, job, {"moments": ["failed"], "channels": ["page"]})
    record_phase(job, "failed")
    services.follow(now=clock.now())
    assert (sentences_for(people.alice), sentences_for(people.bob)) == ([], ["train failed."])
    services.forget_choice(people.alice, job)
    record_phase(job, "failed")
    services.follow(now=clock.now())
    assert len(sentences_for(people.alice)) == 1


def test_lost_access_ends_notifications(people: People, job: Job) -> None:
    services.choose_for_job(people.bob, job, {"moments": ["failed"], "channels": ["page"]})
    tenancy.remove_member(people.lab, people.bob, actor=CONTROLLER, now=clock.now())
    record_phase(job, "failed")
    services.follow(now=clock.now())
    assert sentences_for(people.bob) == []


def test_long_wait_notifies_once(people: People, job: Job) -> None:
    choose(people, moments=["waits"], long_wait_minutes=30)
    now = clock.now()
    services.look(now=now + timedelta(minutes=29))
    assert sentences_for(people.alice) == []
    for minutes in (31, 45, 90):
        services.look(now=now + timedelta(minutes=minutes))
    assert sentences_for(people.alice) == ["train has waited for more than 30 min 0 s."]
    record_phase(job, "pending")
    services.look(now=now + timedelta(minutes=95))
    assert len(sentences_for(people.alice)) == 2  # a new wait


def test_query_count_does_not_grow_with_the_jobs(people: People, job: Job) -> None:
    def count(minutes: int) -> int:
        with CaptureQueriesContext(connection) as queries:
            services.look(now=clock.now() + timedelta(minutes=minutes))
        return len(queries)

    choose(people, moments=["waits"], long_wait_minutes=30)
    one = count(31)
    for number in range(4):
        people.submit(f"more-{number}")
    assert count(120) <= one
    assert len(sentences_for(people.alice)) == 5


def test_upcoming_deletion_notifies_once(people: People, job: Job) -> None:
    now = clock.now()
    Job.objects.update(phase="completed", expires_at=now + timedelta(hours=2))
    services.look(now=now)
    assert sentences_for(people.alice) == []
    for minutes in (65, 80, 110):
        services.look(now=now + timedelta(minutes=minutes))
    assert sentences_for(people.alice) == ["train is about to be deleted with its logs."]


# Mail


def test_every_kind_has_a_sentence_and_a_colour() -> None:
    assert {*rows.STATES} == {*Moment} == {*labels.SENTENCES}


def test_mail_has_the_sentence_and_a_link(people: People, job: Job, mailbox: Mailbox) -> None:
    services.choose(
        people.alice, preferences(moments=["failed"], channels=["mail"], mail="alice@lab.example"), now=clock.now()
    )
    record_phase(job, "failed", message="No luck.")
    services.follow(now=clock.now())
    assert services.send_due(now=clock.now()) == 1
    (message,) = mailbox.messages
    assert (message["To"], message["Subject"]) == ("alice@lab.example", "[Hekla] train failed. No luck.")
    assert f"/jobs/{job.uid}/" in message.get_content()
    assert services.send_due(now=clock.now() + timedelta(days=1)) == 0
    assert selectors.visible_to(people.alice).count() == 0  # not chosen for the page


def test_refused_mail_is_retried(people: People, job: Job, mailbox: Mailbox) -> None:
    services.choose(
        people.alice, preferences(moments=["failed"], channels=["mail"], mail="alice@lab.example"), now=clock.now()
    )
    record_phase(job, "failed")
    now, mailbox.refuses = clock.now(), True
    services.follow(now=now)
    services.send_due(now=now)
    delivery = Delivery.objects.get()
    assert (delivery.attempts, delivery.sent_at, "451" in delivery.error) == (1, None, True)
    mailbox.refuses = False
    assert services.send_due(now=now + timedelta(seconds=10)) == 0  # not yet
    assert services.send_due(now=now + timedelta(seconds=31)) == 1
    assert [message["Subject"] for message in mailbox.messages] == ["[Hekla] train failed."]


def test_digest_is_one_mail(people: People, job: Job, mailbox: Mailbox) -> None:
    choice = preferences(moments=["started", "failed"], channels=["mail"], mail="alice@lab.example", is_digest=True)
    services.choose(people.alice, choice, now=clock.now())
    now = clock.now()
    for phase in ("running", "failed"):
        record_phase(job, phase)
    services.follow(now=now)
    assert services.send_due(now=now + timedelta(minutes=14)) == 0
    assert services.send_due(now=now + timedelta(minutes=16)) == 2
    (message,) = mailbox.messages
    assert message["Subject"] == "[Hekla] train is running. And 1 more"
    assert "train failed." in message.get_content()


def test_mail_is_abandoned_after_the_last_attempt(people: People, job: Job, mailbox: Mailbox) -> None:
    services.choose(
        people.alice, preferences(moments=["failed"], channels=["mail"], mail="alice@lab.example"), now=clock.now()
    )
    record_phase(job, "failed")
    now, mailbox.refuses = clock.now(), True
    services.follow(now=now)
    Delivery.objects.update(attempts=sending.MOST_ATTEMPTS[sending.Channel.MAIL] - 1)
    services.send_due(now=now)
    assert Delivery.objects.get().abandoned_at == now
    assert services.send_due(now=now + timedelta(days=9)) == 0


@pytest.mark.parametrize(("attempts", "seconds"), [(1, 30), (2, 60), (5, 480), (9, 3600), (60, 3600)])
def test_backoff_delay(attempts: int, seconds: int) -> None:
    assert sending.backoff_delay(attempts) == timedelta(seconds=seconds)


# Webhooks


def webhook_secret(people: People, job: Job, hook: Hook) -> str:
    secret = services.choose(
        people.alice, preferences(moments=["failed"], channels=["webhook"], webhook_url=hook.url), now=clock.now()
    )
    record_phase(job, "failed", message="No luck.")
    services.follow(now=clock.now())
    return secret


def test_webhook_is_signed_with_the_secret(people: People, job: Job, hook: Hook) -> None:
    secret = webhook_secret(people, job, hook)
    assert services.send_due(now=clock.now()) == 1
    (request,) = hook.requests
    stamp, digest = (part.partition("=")[2] for part in request.headers["Hekla-Signature"].split(","))
    signed = f"{stamp}.".encode() + request.body
    assert digest == hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
    payload = json.loads(request.body)
    assert (payload["moment"], payload["job"]["name"], payload["sentence"]) == (
        "failed",
        "train",
        "train failed. No luck.",
    )
    assert request.headers["Host"] == f"127.0.0.1:{hook.port}"
    assert secret.encode() not in bytes(Preference.objects.get().webhook_secret)


@pytest.mark.parametrize("status", [302, 404, 500])
def test_failed_webhook_is_retried_without_redirects(people: People, job: Job, hook: Hook, status: int) -> None:
    hook.status = status
    webhook_secret(people, job, hook)
    now = clock.now()
    assert services.send_due(now=now) == 0
    assert Delivery.objects.get().error == f"The webhook answered with status {status}."
    hook.status = 204
    assert services.send_due(now=now + timedelta(seconds=31)) == 1
    assert [request.path for request in hook.requests] == ["/hook", "/hook"]
    assert len({request.headers["Hekla-Delivery"] for request in hook.requests}) == 1


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/x", "http://[::1]/x", "http://10.1.2.3/", "http://169.254.169.254/latest", "http://0.0.0.0/",
        "http://[::ffff:10.0.0.1]/", "http://[64:ff9b::a00:1]/", "http://[2002:a00:1::]/", "http://192.168.1.1:8080/",
        "http://localhost/", "ftp://example.org/", "//example.org", "http:///x", "http://a:b@example.org/", "x",
        "http://[bad/", "http://example.org:99999/", "http://100.64.0.1/", "http://224.0.0.1/", "http://127.1/",
        "http://0x7f000001/", "http://2130706433/", "http://255.255.255.255/", "http://240.0.0.1/",
    ],
)  # fmt: skip
def test_webhook_to_a_private_address_is_refused(url: str) -> None:
    with pytest.raises(Refused):
        addresses.resolve(url)


PRIVATE_IPV6 = {
    "unspecified": "::", "loopback": "::1", "mapped": "::ffff:10.0.0.1", "mapped loopback": "::ffff:127.0.0.1",
    "compatible": "::10.0.0.1", "compatible loopback": "::127.0.0.1", "translated": "::ffff:0:10.0.0.1",
    "NAT64": "64:ff9b::10.0.0.1", "NAT64 of a public address": "64:ff9b::8.8.8.8", "local NAT64": "64:ff9b:1::10.0.0.1",
    "6to4": "2002:a00:1::1", "6to4 loopback": "2002:7f00:1::", "Teredo": "2001:0:53aa:64c:0:fbff:f5ff:fffe",
    "unique local": "fd00::1", "unique local, assigned": "fc00::1", "link-local": "fe80::1",
    "link-local with a zone": "fe80::1%1", "public with a zone": "2606:4700::1111%1", "site-local": "fec0::1",
    "multicast": "ff02::1", "multicast of the internet": "ff0e::1", "discard": "100::1", "documentation": "2001:db8::1",
    "ORCHID": "2001:10::1", "segment routing": "5f00::1", "reserved": "4000::1",
}  # fmt: skip


@pytest.mark.parametrize("address", PRIVATE_IPV6.values(), ids=PRIVATE_IPV6)
def test_every_form_of_a_private_ipv6_address_is_refused(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Refused, match="not a public internet address"):
        addresses.check(f"https://[{address}]/hook")
    answer = (socket.AF_INET6, socket.SOCK_STREAM, 6, "", (address, 443, 0, 0))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_arguments, **_options: [answer])
    with pytest.raises(Refused, match="not a public internet address"):
        addresses.resolve("https://hooks.example.org/")


@pytest.mark.parametrize("address", ["2606:4700:4700::1111", "2a00:1450::200e", "::ffff:8.8.8.8", "1.1.1.1"])
def test_public_address_is_accepted(address: str) -> None:
    url = f"https://[{address}]/hook" if ":" in address else f"https://{address}/hook"
    addresses.check(url)
    assert addresses.resolve(url).name == address


def test_private_address_is_refused_at_delivery(people: People, job: Job, hook: Hook, settings: Any) -> None:
    webhook_secret(people, job, hook)
    settings.WEBHOOKS_MAY_BE_PRIVATE = False
    assert services.send_due(now=clock.now()) == 0
    assert "not a public internet address" in Delivery.objects.get().error
    assert hook.requests == []


def test_channel_without_an_address_is_refused(people: People) -> None:
    for changes, path in (({"channels": ["mail"]}, "mail"), ({"channels": ["webhook"]}, "webhook_url")):
        with pytest.raises(Invalid) as refusal:
            choose(people, **changes)
        assert [problem.path for problem in refusal.value.problems] == [path]


def test_new_secret_replaces_the_old_one(people: People, job: Job, hook: Hook) -> None:
    old = webhook_secret(people, job, hook)
    new = services.renew_secret(people.alice)
    services.send_due(now=clock.now())
    (request,) = hook.requests
    now = int(request.headers["Hekla-Signature"].split(",")[0].removeprefix("t="))
    at = clock.now().fromtimestamp(now, tz=clock.now().tzinfo)
    assert request.headers["Hekla-Signature"] == outgoing.signature(new, request.body, at)
    assert request.headers["Hekla-Signature"] != outgoing.signature(old, request.body, at)


def test_receiver_that_answers_byte_by_byte_keeps_no_worker(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.WEBHOOKS_MAY_BE_PRIVATE = True
    monkeypatch.setattr(outgoing, "_MOST_SECONDS", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as server:
        ended = Event()

        def drip() -> None:
            connection, _address = server.accept()
            with connection, suppress(OSError):
                connection.sendall(b"HTTP/1.1 200 OK\r\n")
                while not ended.wait(0.05):
                    connection.sendall(b"a")

        thread = Thread(target=drip)
        thread.start()
        began, url = time.monotonic(), f"http://127.0.0.1:{server.getsockname()[1]}/"
        try:
            with pytest.raises(outgoing.NotificationNotSent):
                outgoing.post_signed(url, b"{}", "secret", delivery="1", now=clock.now())
        finally:
            ended.set()
            thread.join()
        assert time.monotonic() - began < 3


# Pages and REST


def test_bell_counts_unread_and_list_marks_read(people: People, as_: As, job: Job) -> None:
    client = as_(people.alice)
    assert "bell-count" not in client.get(reverse("notifications:bell")).content.decode()
    record_phase(job, "failed", message="No luck.")
    services.follow(now=clock.now())
    assert ">1</b>" in client.get(reverse("notifications:bell")).content.decode()
    page = client.get(reverse("notifications:list")).content.decode()
    assert "<strong>train failed. No luck.</strong>" in tidy(page)
    newest = Notification.objects.get().pk
    page = client.post(reverse("notifications:read"), {"newest": newest}, follow=True).content.decode()
    assert "<strong>train failed" not in page
    assert "bell-count" not in client.get(reverse("notifications:bell")).content.decode()
    assert "train failed" not in as_(people.bob).get(reverse("notifications:list")).content.decode()


def test_preferences_are_shown_again(people: People, as_: As, job: Job) -> None:
    client = as_(people.alice)
    form = {
        "moments": ["failed"],
        "channels": ["page", "webhook"],
        "long_wait_minutes": "7",
        "mail": "",
        "webhook_url": "",
    }
    page = client.post(reverse("notifications:settings"), form).content.decode()
    assert "Enter a webhook URL." in page
    page = client.post(reverse("notifications:settings"), form | {"webhook_url": "http://10.0.0.1/"}).content.decode()
    assert "not a public internet address" in page
    page = client.post(reverse("notifications:settings"), form | {"webhook_url": "https://example.org/h"})
    assert "Shown once" in page.content.decode()
    assert 'value="7"' in client.get(reverse("notifications:settings")).content.decode()
    address = reverse("notifications:job", args=[job.uid])
    assert "Using your defaults" in client.get(address).content.decode()
    client.post(address, {"moments": ["ended"], "channels": ["page"], "long_wait_minutes": "9"})
    assert "Custom settings for this job" in client.get(address).content.decode()
    client.post(address, {"forget": "yes"})
    assert "Using your defaults" in client.get(address).content.decode()
    assert as_(people.charlie).get(address).status_code == 404


def test_notifications_over_rest(people: People, as_: As, job: Job) -> None:
    client = as_(people.alice)
    settings, own = reverse("api:v1:notification_settings"), reverse("api:v1:job_notifications", args=[job.uid])
    choice = {"moments": ["failed"], "channels": ["page"], "long_wait_minutes": 5}
    answer = client.put(settings, choice, content_type="application/json").json()
    assert (answer["moments"], answer["long_wait_minutes"], answer["secret"]) == (["failed"], 5, "")
    assert client.put(own, {"moments": [], "channels": ["fax"]}, content_type="application/json").status_code == 400
    put = {"moments": ["started"], "channels": ["page"]}
    assert client.put(own, put, content_type="application/json").json()["moments"] == ["started"]
    record_phase(job, "running")
    services.follow(now=clock.now())
    (one,) = client.get(reverse("api:v1:notifications"), {"unread": "1"}).json()["results"]
    assert (one["moment"], one["sentence"]) == ("started", "train is running.")
    done = client.post(reverse("api:v1:notifications"), {"up_to": one["number"]}, content_type="application/json")
    assert done.status_code == 204
    assert client.get(reverse("api:v1:notifications"), {"unread": "1"}).json()["results"] == []
    assert client.delete(own).status_code == 204
    assert client.get(own).json()["moments"] == ["failed"]


def test_old_notifications_are_deleted(people: People, job: Job) -> None:
    record_phase(job, "failed")
    services.follow(now=clock.now())
    services.choose_for_job(people.alice, job, {"moments": [], "channels": ["page"]})
    assert services.tidy(now=clock.now() + timedelta(days=89)) == 0
    assert selectors.job_choice(people.alice, job)
    gone = Job(uid=job.uid)
    Job.objects.filter(pk=job.pk).delete()
    assert services.tidy(now=clock.now() + timedelta(days=91)) == 1
    assert selectors.job_choice(people.alice, gone) is None
