"""What people are told of jobs: what they chose, once, in the page, by mail and by webhook, and never lost."""

import hashlib
import hmac
import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from tests.apps.access_world import MANIFEST, SPEC
from tests.apps.conftest import People
from tests.apps.test_submission import typed
from tests.support.markup import tidy
from tests.support.receivers import Hook, Mailbox, mail_server, receiver

from hekla.apps.accounts.models import User
from hekla.apps.event_log.services import CONTROLLER, unit_of_work
from hekla.apps.jobs.models import Job
from hekla.apps.jobs.services.telling import tell
from hekla.apps.notifications import addresses, labels, outgoing, selectors, services
from hekla.apps.notifications.models import Delivery, JobChoice, Notification, NotificationCursor, Preference
from hekla.apps.notifications.services import sending
from hekla.apps.tenancy import services as tenancy
from hekla.domain import events
from hekla.domain.errors import Invalid, Refused
from hekla.domain.phases import JobPhase
from hekla.lib import clock

As = Callable[[User], Client]
ALL = ["started", "ended", "failed", "waits", "evicted", "deleting"]


def chosen(**changes: Any) -> dict[str, Any]:
    plain = {"moments": ALL, "channels": ["page"], "long_wait_minutes": 30, "mail": "", "is_digest": False}
    return {**plain, "webhook_url": "", **changes}


def became(job: Job, new: str, **more: Any) -> None:
    with unit_of_work():
        event = events.JobPhaseChanged(old=JobPhase(job.phase), new=JobPhase(new), **more)
        tell(job, event, actor=CONTROLLER, now=clock.now())


def evicted(job: Job, *pods: int) -> None:
    now = clock.now()
    with unit_of_work():
        for index in pods:
            event = events.PodEvicted(task="main", index=index, attempt=1, action="reclaim")
            tell(job, event, actor=CONTROLLER, now=now)


def told(user: User) -> list[str]:
    return [labels.sentence(one) for one in Notification.objects.filter(user=user).order_by("pk")]


@pytest.fixture
def job(people: People) -> Job:
    services.follow(now=clock.now())  # the reader begins here
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
    ("moment", "happens", "sentence"),
    [
        ("started", lambda job: became(job, "running"), "train is running."),
        ("ended", lambda job: became(job, "completed", message="All done."), "train: Completed. All done."),
        ("failed", lambda job: became(job, "failed", message="No luck."), "train failed. No luck."),
        ("evicted", lambda job: evicted(job, 0, 1), "2 pods of train are being evicted."),
    ],
)
def test_one_is_told_of_the_moments_that_one_chose_and_of_no_other(
    people: People, job: Job, moment: str, happens: Callable[[Job], None], sentence: str
) -> None:
    services.choose(people.alice, chosen(moments=[moment]))
    happens(job)
    became(job, "restarting")
    services.follow(now=clock.now())
    assert told(people.alice) == [sentence]
    services.choose(people.alice, chosen(moments=[one for one in ALL if one != moment]))
    happens(job)
    services.follow(now=clock.now())
    assert told(people.alice) == [sentence]


def test_who_chose_nothing_is_told_of_ends_and_evictions_in_the_page(people: People, job: Job) -> None:
    for phase in ("running", "failed"):
        became(job, phase)
    services.follow(now=clock.now())
    assert told(people.alice) == ["train failed."]
    assert not Delivery.objects.exists()


def test_nobody_is_told_twice_however_often_the_log_is_read(people: People, job: Job) -> None:
    number = NotificationCursor.objects.get().number
    became(job, "failed")
    evicted(job, 0)
    for _ in range(3):
        NotificationCursor.objects.update(number=number)  # as after a crash
        services.follow(now=clock.now())
    assert len(told(people.alice)) == 2


def test_the_past_before_the_first_reading_is_not_told(people: People) -> None:
    job = people.submit("old")
    became(job, "failed")
    services.follow(now=clock.now())
    assert told(people.alice) == []


def test_a_choice_for_one_job_comes_before_that_for_all(people: People, job: Job) -> None:
    services.choose_for_job(people.alice, job, {"moments": [], "channels": ["page"]})
    services.choose_for_job(people.bob, job, {"moments": ["failed"], "channels": ["page"]})
    became(job, "failed")
    services.follow(now=clock.now())
    assert (told(people.alice), told(people.bob)) == ([], ["train failed."])
    services.forget_choice(people.alice, job)
    became(job, "failed")
    services.follow(now=clock.now())
    assert len(told(people.alice)) == 1


def test_who_may_not_see_the_job_any_more_hears_nothing(people: People, job: Job) -> None:
    services.choose_for_job(people.bob, job, {"moments": ["failed"], "channels": ["page"]})
    tenancy.remove_member(people.lab, people.bob, actor=CONTROLLER, now=clock.now())
    became(job, "failed")
    services.follow(now=clock.now())
    assert told(people.bob) == []


def test_a_long_wait_is_told_once(people: People, job: Job) -> None:
    services.choose(people.alice, chosen(moments=["waits"], long_wait_minutes=30))
    now = clock.now()
    services.look(now=now + timedelta(minutes=29))
    assert told(people.alice) == []
    for minutes in (31, 45, 90):
        services.look(now=now + timedelta(minutes=minutes))
    assert told(people.alice) == ["train has waited for more than 30 min 0 s."]
    became(job, "pending")
    services.look(now=now + timedelta(minutes=95))
    assert len(told(people.alice)) == 2  # it waits anew


def test_a_deletion_to_come_is_told_once(people: People, job: Job) -> None:
    now = clock.now()
    Job.objects.update(phase="completed", expires_at=now + timedelta(hours=2))
    services.look(now=now)
    assert told(people.alice) == []
    for minutes in (65, 80, 110):
        services.look(now=now + timedelta(minutes=minutes))
    assert told(people.alice) == ["train is about to be deleted with its logs."]


# By mail


def test_mail_comes_with_the_sentence_and_the_way_to_the_job(people: People, job: Job, mailbox: Mailbox) -> None:
    services.choose(people.alice, chosen(moments=["failed"], channels=["mail"], mail="alice@lab.example"))
    became(job, "failed", message="No luck.")
    services.follow(now=clock.now())
    assert services.send_due(now=clock.now()) == 1
    (message,) = mailbox.messages
    assert (message["To"], message["Subject"]) == ("alice@lab.example", "[Hekla] train failed. No luck.")
    assert f"/jobs/{job.uid}/" in message.get_content()
    assert services.send_due(now=clock.now() + timedelta(days=1)) == 0
    assert selectors.visible_to(people.alice).count() == 0  # not chosen for the page


def test_mail_that_is_not_taken_comes_later(people: People, job: Job, mailbox: Mailbox) -> None:
    services.choose(people.alice, chosen(moments=["failed"], channels=["mail"], mail="alice@lab.example"))
    became(job, "failed")
    now, mailbox.refuses = clock.now(), True
    services.follow(now=now)
    services.send_due(now=now)
    kept = Delivery.objects.get()
    assert (kept.attempts, kept.sent_at, "451" in kept.error) == (1, None, True)
    mailbox.refuses = False
    assert services.send_due(now=now + timedelta(seconds=10)) == 0  # not yet
    assert services.send_due(now=now + timedelta(seconds=31)) == 1
    assert [message["Subject"] for message in mailbox.messages] == ["[Hekla] train failed."]


def test_several_go_in_one_mail_for_who_wants_that(people: People, job: Job, mailbox: Mailbox) -> None:
    wish = chosen(moments=["started", "failed"], channels=["mail"], mail="alice@lab.example", is_digest=True)
    services.choose(people.alice, wish)
    now = clock.now()
    for phase in ("running", "failed"):
        became(job, phase)
    services.follow(now=now)
    assert services.send_due(now=now + timedelta(minutes=14)) == 0
    assert services.send_due(now=now + timedelta(minutes=16)) == 2
    (message,) = mailbox.messages
    assert message["Subject"] == "[Hekla] train is running. And 1 more"
    assert "train failed." in message.get_content()


def test_mail_is_given_up_at_last(people: People, job: Job, mailbox: Mailbox) -> None:
    services.choose(people.alice, chosen(moments=["failed"], channels=["mail"], mail="alice@lab.example"))
    became(job, "failed")
    now, mailbox.refuses = clock.now(), True
    services.follow(now=now)
    Delivery.objects.update(attempts=sending.MOST_ATTEMPTS[sending.Channel.MAIL] - 1)
    services.send_due(now=now)
    assert Delivery.objects.get().abandoned_at == now
    assert services.send_due(now=now + timedelta(days=9)) == 0


@pytest.mark.parametrize(("attempts", "seconds"), [(1, 30), (2, 60), (5, 480), (9, 3600), (60, 3600)])
def test_it_is_tried_ever_more_seldom(attempts: int, seconds: int) -> None:
    assert sending.backoff_delay(attempts) == timedelta(seconds=seconds)


# By webhook


def sends(people: People, job: Job, hook: Hook) -> str:
    secret = services.choose(people.alice, chosen(moments=["failed"], channels=["webhook"], webhook_url=hook.url))
    became(job, "failed", message="No luck.")
    services.follow(now=clock.now())
    return secret


def test_a_webhook_is_signed_with_the_secret_that_was_shown(people: People, job: Job, hook: Hook) -> None:
    secret = sends(people, job, hook)
    assert services.send_due(now=clock.now()) == 1
    (request,) = hook.requests
    stamp, digest = (part.partition("=")[2] for part in request.headers["Hekla-Signature"].split(","))
    signed = f"{stamp}.".encode() + request.body
    assert digest == hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
    told_ = json.loads(request.body)
    assert (told_["moment"], told_["job"]["name"], told_["sentence"]) == ("failed", "train", "train failed. No luck.")
    assert request.headers["Host"] == f"127.0.0.1:{hook.port}"
    assert secret.encode() not in bytes(Preference.objects.get().webhook_secret)


@pytest.mark.parametrize("status", [302, 404, 500])
def test_a_webhook_that_does_not_take_it_is_asked_again_and_never_followed(
    people: People, job: Job, hook: Hook, status: int
) -> None:
    hook.status = status
    sends(people, job, hook)
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
        "http://[bad/", "http://example.org:99999/", "http://100.64.0.1/", "http://224.0.0.1/",
    ],
)  # fmt: skip
def test_a_webhook_leads_to_no_private_place(url: str) -> None:
    with pytest.raises(Refused):
        addresses.resolve(url)


def test_a_name_that_stands_for_a_private_address_is_refused_when_it_is_sent(
    people: People, job: Job, hook: Hook, settings: Any
) -> None:
    sends(people, job, hook)
    settings.WEBHOOKS_MAY_BE_PRIVATE = False
    assert services.send_due(now=clock.now()) == 0
    assert "not a public internet address" in Delivery.objects.get().error
    assert hook.requests == []


def test_a_way_that_leads_nowhere_is_refused(people: People) -> None:
    for changes, path in (({"channels": ["mail"]}, "mail"), ({"channels": ["webhook"]}, "webhook_url")):
        with pytest.raises(Invalid) as refusal:
            services.choose(people.alice, chosen(**changes))
        assert [problem.path for problem in refusal.value.problems] == [path]


def test_a_new_secret_ends_the_old_one(people: People, job: Job, hook: Hook) -> None:
    old = sends(people, job, hook)
    new = services.renew_secret(people.alice)
    services.send_due(now=clock.now())
    (request,) = hook.requests
    now = int(request.headers["Hekla-Signature"].split(",")[0].removeprefix("t="))
    at = clock.now().fromtimestamp(now, tz=clock.now().tzinfo)
    assert request.headers["Hekla-Signature"] == outgoing.signature(new, request.body, at)
    assert request.headers["Hekla-Signature"] != outgoing.signature(old, request.body, at)


# In the page, and for programs


def test_the_bell_counts_and_the_list_is_read(people: People, as_: As, job: Job) -> None:
    client = as_(people.alice)
    assert "bell-count" not in client.get(reverse("notifications:bell")).content.decode()
    became(job, "failed", message="No luck.")
    services.follow(now=clock.now())
    assert ">1</b>" in client.get(reverse("notifications:bell")).content.decode()
    page = client.get(reverse("notifications:list")).content.decode()
    assert "<strong>train failed. No luck.</strong>" in tidy(page)
    newest = Notification.objects.get().pk
    page = client.post(reverse("notifications:read"), {"newest": newest}, follow=True).content.decode()
    assert "<strong>train failed" not in page
    assert "bell-count" not in client.get(reverse("notifications:bell")).content.decode()
    assert "train failed" not in as_(people.bob).get(reverse("notifications:list")).content.decode()


def test_what_one_chose_is_shown_again(people: People, as_: As, job: Job) -> None:
    client = as_(people.alice)
    typed = {
        "moments": ["failed"],
        "channels": ["page", "webhook"],
        "long_wait_minutes": "7",
        "mail": "",
        "webhook_url": "",
    }
    page = client.post(reverse("notifications:settings"), typed).content.decode()
    assert "Enter a webhook URL." in page
    page = client.post(reverse("notifications:settings"), typed | {"webhook_url": "http://10.0.0.1/"}).content.decode()
    assert "not a public internet address" in page
    page = client.post(reverse("notifications:settings"), typed | {"webhook_url": "https://example.org/h"})
    assert "Shown once" in page.content.decode()
    assert 'value="7"' in client.get(reverse("notifications:settings")).content.decode()
    address = reverse("notifications:job", args=[job.uid])
    assert "Using your defaults" in client.get(address).content.decode()
    client.post(address, {"moments": ["ended"], "channels": ["page"], "long_wait_minutes": "9"})
    assert "Custom settings for this job" in client.get(address).content.decode()
    client.post(address, {"forget": "yes"})
    assert "Using your defaults" in client.get(address).content.decode()
    assert as_(people.charlie).get(address).status_code == 404


def test_programs_choose_and_read_too(people: People, as_: As, job: Job) -> None:
    client = as_(people.alice)
    settings, own = reverse("api:v1:notification_settings"), reverse("api:v1:job_notifications", args=[job.uid])
    wish = {"moments": ["failed"], "channels": ["page"], "long_wait_minutes": 5}
    answer = client.put(settings, wish, content_type="application/json").json()
    assert (answer["moments"], answer["long_wait_minutes"], answer["secret"]) == (["failed"], 5, "")
    assert client.put(own, {"moments": [], "channels": ["fax"]}, content_type="application/json").status_code == 400
    put = {"moments": ["started"], "channels": ["page"]}
    assert client.put(own, put, content_type="application/json").json()["moments"] == ["started"]
    became(job, "running")
    services.follow(now=clock.now())
    (one,) = client.get(reverse("api:v1:notifications"), {"unread": "1"}).json()["results"]
    assert (one["moment"], one["sentence"]) == ("started", "train is running.")
    done = client.post(reverse("api:v1:notifications"), {"up_to": one["number"]}, content_type="application/json")
    assert done.status_code == 204
    assert client.get(reverse("api:v1:notifications"), {"unread": "1"}).json()["results"] == []
    assert client.delete(own).status_code == 204
    assert client.get(own).json()["moments"] == ["failed"]


def test_what_is_old_is_forgotten(people: People, job: Job) -> None:
    became(job, "failed")
    services.follow(now=clock.now())
    services.choose_for_job(people.alice, job, {"moments": [], "channels": ["page"]})
    assert services.tidy(now=clock.now() + timedelta(days=89)) == 0
    assert selectors.job_choice(people.alice, job)
    gone = Job(uid=job.uid)
    Job.objects.filter(pk=job.pk).delete()
    assert services.tidy(now=clock.now() + timedelta(days=91)) == 1
    assert selectors.job_choice(people.alice, gone) is None


NOTIFY = {"notify-moments": ["failed", "started"], "notify-channels": ["page"], "notify-long_wait_minutes": "5"}


def choices() -> list[tuple[list[str], list[str], int]]:
    return [(one.moments, one.channels, one.long_wait_minutes) for one in JobChoice.objects.order_by("pk")]


@pytest.mark.parametrize("route", ["jobs:submit", "jobs:submit_yaml"])
def test_what_one_wants_to_hear_is_chosen_with_the_submission(people: People, as_: As, route: str) -> None:
    services.choose(people.alice, chosen(moments=["ended"], long_wait_minutes=7))
    first = as_(people.alice).get(reverse(route)).context["beside"].hears
    assert (first["moments"].value(), first["long_wait_minutes"].value()) == (["ended"], 7)
    as_(people.alice).post(reverse(route), {**typed(), "text": MANIFEST, **NOTIFY})
    assert choices() == [(["failed", "started"], ["page"], 5)]
    assert JobChoice.objects.get().job_uid == Job.objects.get().uid


def test_what_holds_for_all_jobs_is_not_kept_for_one(people: People, as_: As) -> None:
    usual = {"notify-moments": ["ended", "failed", "evicted", "deleting"], "notify-channels": ["page"]}
    as_(people.alice).post(reverse("jobs:submit"), {**typed(), **usual, "notify-long_wait_minutes": "30"})
    assert (Job.objects.count(), choices()) == (1, [])


@pytest.mark.parametrize("do", ["", "yaml", "sweep", "distributed"])
def test_a_way_that_leads_nowhere_refuses_the_job_and_nothing_typed_is_lost(people: People, as_: As, do: str) -> None:
    page = as_(people.alice).post(
        reverse("jobs:submit"), {**typed(), **NOTIFY, "notify-channels": ["webhook"], "do": do}
    )
    hears = page.context["beside"].hears
    assert (hears["channels"].value(), hears["moments"].value()) == (["webhook"], ["failed", "started"])
    assert ("Enter a webhook URL." in page.content.decode()) is (do == "")
    assert (Job.objects.count(), choices()) == (0, [])


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ("", []),
        ("?notify=failed&notify=waits&notify_after=9", [(["failed", "waits"], ["page"], 9)]),
        ("?notify=nothing", [([], ["page"], 30)]),
        ("?notify_by=mail", [(["deleting", "ended", "evicted", "failed"], ["mail"], 30)]),
    ],
)
def test_the_same_by_rest(people: People, as_: As, query: str, kept: list[Any]) -> None:
    services.choose(people.alice, chosen(moments=["ended", "failed", "evicted", "deleting"], mail="a@example.org"))
    answer = as_(people.alice).post(f"/api/v1/jobs{query}", SPEC, content_type="application/json")
    assert (answer.status_code, choices()) == (201, kept)


@pytest.mark.parametrize("query", ["?notify=often", "?notify_by=mail", "?notify_after=0"])
def test_rest_refuses_what_cannot_be_told_and_takes_no_job(people: People, as_: As, query: str) -> None:
    User.objects.filter(pk=people.alice.pk).update(email="")
    answer = as_(people.alice).post(f"/api/v1/jobs{query}", SPEC, content_type="application/json")
    assert answer.status_code in (400, 422), answer.content
    assert answer.json()["errors"][0]["path"].startswith("notify")
    assert not Job.objects.exists()
