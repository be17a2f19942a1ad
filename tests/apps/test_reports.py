"""Reports: what each reader gets of them, as pages, files and mails, sent once and only to who may see them."""

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pypdfium2
import pytest
from django.core import mail
from django.test import Client
from django.urls import reverse
from django.utils import translation
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people
from tests.support.receivers import Mailbox, mail_server

from hekla.apps import limits
from hekla.apps.accounts.models import User
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.measures.models import ClusterGpuTime, HolderGpuTime, MeasuredCluster, NodeGpuTime, PartGpuTime
from hekla.apps.notifications import services as notifications
from hekla.apps.notifications.choices import Moment
from hekla.apps.notifications.models import Notification, Preference
from hekla.apps.reports import composing, html, pdf, selectors, services
from hekla.apps.reports.models import Report, ReportCopy, ReportRun
from hekla.apps.tenancy import services as tenancy
from hekla.domain.errors import Invalid, Refused
from hekla.domain.gpu_time import GPU_HOUR
from hekla.domain.reports import ReportSpec

__all__ = ["db", "people", "shared_people"]
NOW = datetime(2026, 11, 28, 9, 30, tzinfo=UTC)
MONDAY = datetime(2026, 11, 30, 8, tzinfo=UTC)
SECTIONS = ["classes", "tenants", "queues", "people", "waste"]
As = Callable[[User], Client]


@pytest.fixture
def mailbox(settings: Any) -> Iterator[Mailbox]:
    with mail_server() as box:
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT, settings.EMAIL_USE_TLS = "127.0.0.1", box.port, False
        settings.MAIL_IS_SET_UP, settings.PUBLIC_URL = True, "https://hekla.example.org"
        yield box


def _measure(people: People, when: dict[str, Any]) -> None:
    """The sums of an hour or day, as the roll-up writes them."""
    place = {**when, "cluster_id": people.cluster.pk}
    for tenant, owner, useful, idle in ((people.lab, people.alice, 7, 3), (people.other, people.charlie, 4, 0)):
        held = {"useful": useful * GPU_HOUR, "idle": idle * GPU_HOUR}
        keys = {"queue_id": people.queue.pk, "tenant_id": tenant.pk, "owner_id": owner.pk}
        HolderGpuTime.objects.create(**place, **keys, kind="batch", **held)
        for by, key in (("tenant", tenant.pk), ("person", owner.pk)):
            PartGpuTime.objects.create(**place, by=by, key=str(key), **held)
    whole = {"useful": 11 * GPU_HOUR, "idle": 3 * GPU_HOUR}
    PartGpuTime.objects.create(**place, by="queue", key=str(people.queue.pk), **whole)
    NodeGpuTime.objects.create(**place, node="n1", **whole, free=2 * GPU_HOUR)
    ClusterGpuTime.objects.create(**place, **whole, free=2 * GPU_HOUR)


@pytest.fixture
def measured(people: People) -> People:
    """A real cluster with ten GPU hours of the lab on Tuesday, four of another tenant, and two that nobody held."""
    type(people.cluster).objects.filter(pk=people.cluster.pk).update(kind="local")
    for level, hour in ((60, 10), (1440, 0)):
        _measure(people, {"level": level, "at": datetime(2026, 11, 24, hour, tzinfo=UTC), "model": "A100"})
    MeasuredCluster.objects.create(cluster_id=people.cluster.pk, until=MONDAY)
    return people


def spec(**more: Any) -> ReportSpec:
    return ReportSpec.parse({"name": "Use", "sections": SECTIONS, "every": "week", **more})


def made(people: People, by: User | None = None, **more: Any) -> Report:
    return services.create(spec=spec(**more), user=by or people.alice, now=NOW)


def with_mail(*users: User, language: str = "") -> None:
    for user in users:
        Preference.objects.update_or_create(
            user=user, defaults={"mail": f"{user.username}@lab.example", "language": language}
        )


def cells(report: Report, reader: User) -> dict[str, list[tuple[str, ...]]]:
    """The rows of each section, as the reader gets them."""
    found = selectors.spec_of(report)
    contents = composing.compose(found, found.span(MONDAY), reader, now=MONDAY)
    return {part.title: list(part.table.rows) for part in contents.parts if part.table}


def pdf_text(content: bytes) -> str:
    document = pypdfium2.PdfDocument(content)
    try:
        return "".join(page.get_textpage().get_text_range() for page in document)
    finally:
        document.close()


def copies() -> list[tuple[str, str, bool]]:
    found = ReportCopy.objects.order_by("user__username")
    return [(copy.user.username, copy.obstacle, copy.sent_at is not None) for copy in found]


def test_each_reader_gets_what_they_may_see(measured: People) -> None:
    report = made(measured, recipients=["alice", "bob"])
    hers, adas = cells(report, measured.alice), cells(report, measured.ada)
    assert hers["GPU time by tenant"] == [("Lab", "10.0", "7.0", "3.0", "30.0 %")]
    assert [row[0] for row in adas["GPU time by tenant"]] == ["Lab", "Other"]
    assert ("Free", "2.0", "12.5 %", "0.0", "") in adas["What became of the GPU time"]
    assert "Free" not in {row[0] for row in hers["What became of the GPU time"]}
    assert hers["People with most wasted GPU time"] == [("alice", "10.0", "7.0", "3.0", "30.0 %")]
    assert hers["GPU time by queue"][0][:2] == ("default", "10.0")
    assert cells(report, measured.charlie)["GPU time by person"][0][:2] == ("charlie", "4.0")


def test_a_mail_has_the_report_as_html_and_as_pdf(measured: People, mailbox: Mailbox) -> None:
    with_mail(measured.alice, measured.bob)
    with_mail(measured.ada, language="zh-hans")
    report = made(measured, measured.ada, recipients=["alice", "ada"])
    services.send_due(now=MONDAY)
    assert notifications.send_due(now=MONDAY) == 2
    english, chinese = sorted(mailbox.messages, key=lambda one: one["To"], reverse=True)
    assert (english["To"], english["Subject"]) == ("alice@lab.example", "[Hekla] Report Use")
    page = english.get_body(("html",)).get_content()  # type: ignore[union-attr]
    text = english.get_body(("plain",)).get_content()  # type: ignore[union-attr]
    assert "<svg" in page
    assert "<script" not in page
    assert "Lab | 10.0 | 7.0 | 3.0 | 30.0 %" in text
    assert "ada named you as a recipient" in text
    assert f"https://hekla.example.org/reports/{report.uid}/" in text
    (file,) = english.iter_attachments()
    assert (file.get_filename(), file.get_content_type()) == ("Use-2026-11-23.pdf", "application/pdf")
    assert "GPU time by tenant" in pdf_text(file.get_content())
    assert "Other" not in pdf_text(file.get_content()) + page + text
    (file,) = chinese.iter_attachments()
    assert "Other" in pdf_text(file.get_content())
    assert copies() == [("ada", "", True), ("alice", "", True)]


def test_chinese_text_of_a_pdf_can_be_copied(measured: People) -> None:
    measured.lab.name = "视觉实验室 <b>é"
    measured.lab.save(update_fields=["name"])
    report = made(measured)
    found = selectors.spec_of(report)
    with translation.override("zh-hans"):
        contents = composing.compose(found, found.span(MONDAY), measured.alice, now=MONDAY)
        text, page = pdf_text(pdf.document(contents)), html.document(contents)
    assert "视觉实验室 <b>é" in text
    assert "视觉实验室 &lt;b&gt;é" in page
    assert '<html lang="zh-hans">' in page
    long = contents.parts[1].table.rows[0][0] * 30  # type: ignore[union-attr]
    assert "…" in pdf_text(pdf.document(type(contents)(title=long, lines=(long,), parts=contents.parts)))


def test_two_workers_and_a_late_start_send_one_report(measured: People, mailbox: Mailbox) -> None:
    with_mail(measured.alice)
    report = made(measured, every="day", period="day", recipients=["alice"])
    late = MONDAY + timedelta(days=3)
    for _worker in range(2):
        services.send_due(now=late)
        notifications.send_due(now=late)
    run = ReportRun.objects.get()
    assert (run.due_at, run.end) == (late, late.replace(hour=0))
    assert len(mailbox.messages) == 1
    Report.objects.filter(pk=report.pk).update(next_at=late)  # as if the worker had died before it planned the next
    services.send_due(now=late)
    assert ReportRun.objects.count() == 1
    report.refresh_from_db()
    assert report.next_at == late + timedelta(days=1)


def test_who_loses_the_right_is_left_out_or_stops_the_report(measured: People, mailbox: Mailbox) -> None:
    with_mail(measured.bob, measured.charlie)
    tenancy.add_member(measured.lab, measured.charlie, "viewer", actor=PLATFORM, now=NOW)
    report = made(measured, measured.bob, scope="tenant", subject="lab", recipients=["bob", "charlie"])
    tenancy.remove_member(measured.lab, measured.charlie.pk, actor=PLATFORM, now=NOW)
    services.send_due(now=MONDAY)
    assert copies() == [("bob", "", False), ("charlie", "hidden", False)]
    tenancy.remove_member(measured.lab, measured.bob.pk, actor=PLATFORM, now=NOW)
    assert notifications.send_due(now=MONDAY) == 0  # the mail was queued, but he may not see it any more
    assert mailbox.messages == []
    copy = ReportCopy.objects.get(user=measured.bob)
    assert (copy.failed_at, copy.error) == (MONDAY, "may not see what the report is about")
    services.send_due(now=MONDAY + timedelta(days=7))
    report.refresh_from_db()
    assert (report.stopped, report.next_at, ReportRun.objects.count()) == ("hidden", None, 1)
    assert LoggedEvent.objects.filter(kind="ReportStopped", subject=f"report:{report.uid}").exists()
    notice = Notification.objects.get(moment="report_stopped")
    assert (notice.user, notice.page) == (report.owner, reverse("reports:detail", args=[report.uid]))
    services.change(report, {"hour": 9}, user=measured.ada, now=MONDAY)  # an admin takes it over
    report.refresh_from_db()
    assert (report.stopped, report.owner) == ("", measured.ada)


def test_a_mail_that_is_refused_is_retried_and_in_the_history(measured: People, mailbox: Mailbox, as_: As) -> None:
    with_mail(measured.alice)
    report = made(measured, recipients=["alice", "bob"])
    mailbox.refuses = True
    services.send_due(now=MONDAY)
    notifications.send_due(now=MONDAY)
    answer = as_(measured.alice).get(reverse("reports:detail", args=[report.uid]))
    words = re.sub(r"\s+", " ", answer.content.decode())
    assert "waiting for the mail server – The mail server rejected the message" in words
    assert "alice@lab.example" not in words
    assert "in the console only" in words  # Bob has no address
    mailbox.refuses = False
    assert notifications.send_due(now=MONDAY + timedelta(minutes=2)) == 1
    assert notifications.send_due(now=MONDAY + timedelta(days=1)) == 0
    his = as_(measured.bob).get(reverse("reports:detail", args=[report.uid])).content.decode()
    assert "alice:" not in his  # only who may change the report sees all copies


def test_deleted_report_sends_nothing(measured: People, mailbox: Mailbox) -> None:
    with_mail(measured.alice)
    report = made(measured, recipients=["alice"])
    services.send_due(now=MONDAY)
    services.delete(report, user=measured.alice, now=MONDAY)
    assert (notifications.send_due(now=MONDAY), mailbox.messages) == (0, [])


def test_a_paused_report_is_not_sent(measured: People) -> None:
    report = services.pause(made(measured, recipients=["alice"]), paused=True, user=measured.alice, now=NOW)
    services.send_due(now=MONDAY)
    assert not ReportRun.objects.exists()
    report = services.pause(report, paused=False, user=measured.alice, now=MONDAY + timedelta(hours=1))
    assert report.next_at == MONDAY + timedelta(days=7)


@pytest.mark.parametrize(
    ("more", "path"),
    [
        ({"recipients": ["charlie"]}, "recipients"),
        ({"recipients": ["nobody"]}, "recipients"),
        ({"scope": "tenant", "subject": "other"}, "subject"),
        ({"scope": "cluster", "subject": "none"}, "subject"),
        ({"sections": ["secrets"]}, "sections"),
    ],
)
def test_only_what_the_owner_may_see_can_be_saved(people: People, more: dict[str, Any], path: str) -> None:
    with pytest.raises(Invalid) as found:
        made(people, **more)
    assert [problem.path for problem in found.value.problems] == [path]


def test_sending_by_hand_is_limited(measured: People) -> None:
    report = made(measured, recipients=["alice"])
    for minute in range(services.MOST_BY_HAND):
        services.send_now(report, user=measured.alice, now=NOW + timedelta(minutes=minute))
    with pytest.raises(Refused):
        services.send_now(report, user=measured.alice, now=NOW + timedelta(hours=1))
    assert services.send_now(report, user=measured.alice, now=NOW) == ReportRun.objects.order_by("due_at").first()
    assert mail.outbox == []


def test_one_person_sends_only_so_much_by_hand(measured: People, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also with a new report for each time."""
    monkeypatch.setattr(services, "MOST_BY_HAND_OF_ONE", 2)
    monkeypatch.setattr(limits.clock, "now", lambda: datetime(2020, 1, 1, tzinfo=UTC))  # no other test counts then
    for _time in range(2):
        report = made(measured, recipients=["alice"])
        services.send_now(report, user=measured.alice, now=NOW)
        services.delete(report, user=measured.alice, now=NOW)
    with pytest.raises(Refused, match="2 times today"):
        services.send_now(made(measured, recipients=["alice"]), user=measured.alice, now=NOW)
    assert not ReportRun.objects.exists()


def test_mistake_in_one_report_stops_no_other_report_and_no_other_mail(
    measured: People, mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_mail(measured.alice)
    first = made(measured, name="First", recipients=["alice"])
    made(measured, name="Second", recipients=["alice"])
    Report.objects.filter(pk=first.pk).update(next_at=NOW, spec=["not", "an", "object"])
    services.send_due(now=MONDAY)
    assert ReportRun.objects.count() == 1
    facts = {"job": "x", "job_uid": "0" * 32, "ends_at": MONDAY.isoformat()}
    later = MONDAY + timedelta(seconds=1)
    notifications.tell_of_themselves(measured.alice, Moment.IDLE, "k", at=later, facts=facts, always_mail=True)

    def broken(*_words: object) -> bytes:
        raise KeyError("font")

    monkeypatch.setattr(pdf, "document", broken)
    assert notifications.send_due(now=later) == 1
    assert ReportCopy.objects.get().error == "The mail cannot be written."
    monkeypatch.undo()
    assert notifications.send_due(now=MONDAY + timedelta(minutes=2)) == 1
    assert copies() == [("alice", "", True)]


def test_other_mails_do_not_wait_for_reports(measured: People, mailbox: Mailbox) -> None:
    with_mail(measured.alice, measured.bob)
    made(measured, recipients=["alice", "bob"])
    services.send_due(now=MONDAY)
    facts = {"job": "x", "job_uid": "0" * 32, "ends_at": MONDAY.isoformat()}
    later = MONDAY + timedelta(minutes=1)
    notifications.tell_of_themselves(measured.alice, Moment.IDLE, "k", at=later, facts=facts, always_mail=True)
    assert notifications.send_due(now=later) == 3
    assert ["Report" in message["Subject"] for message in mailbox.messages] == [False, True, True]


def test_change_of_a_report_that_is_due_loses_no_mail(measured: People) -> None:
    report = made(measured, recipients=["alice"])
    services.change(report, {"name": "Other"}, user=measured.alice, now=MONDAY + timedelta(seconds=20))
    services.send_due(now=MONDAY + timedelta(minutes=1))
    assert ReportRun.objects.get().due_at == MONDAY
    changed = services.change(report, {"hour": 9}, user=measured.alice, now=NOW)
    assert changed.next_at == MONDAY.replace(hour=9)


def test_recipients_of_different_tenants_do_not_learn_of_each_other(measured: People, as_: As) -> None:
    report = made(measured, measured.ada, recipients=["alice", "charlie"])
    for reader, has_others in ((measured.alice, False), (measured.ada, True)):
        for name in ("reports:detail", "api:v1:report"):
            text = as_(reader).get(reverse(name, args=[report.uid])).content.decode()
            assert ("charlie" in text) is has_others
            assert "alice" in text


def test_pages_and_files(measured: People, as_: As) -> None:
    browser = as_(measured.alice)
    form = {"name": "Use <i>", "about": "tenant:lab", "sections": SECTIONS, "period": "week", "every": "week"}
    form |= {"hour": "8", "time_zone": "Asia/Shanghai", "recipients": "alice, charlie"}
    refused = browser.post(reverse("reports:create"), form).content.decode()
    assert "Unknown person “charlie”." in refused
    assert "alice, charlie" in refused
    browser.post(reverse("reports:create"), {**form, "recipients": "alice"})
    report = Report.objects.get()
    assert "Use &lt;i&gt;" in browser.get(reverse("reports:list")).content.decode()
    run = services.send_now(report, user=measured.alice, now=MONDAY)
    assert "is ready." in browser.get(reverse("notifications:list")).content.decode()
    page = browser.get(reverse("reports:run", args=[report.uid, run.uid])).content.decode()
    assert "<svg" in page
    assert "7.0" in page
    for name, kind in (("html", "text/html; charset=utf-8"), ("pdf", "application/pdf")):
        answer = browser.get(reverse(f"reports:{name}", args=[report.uid]), {"run": run.uid})
        assert answer["Content-Type"] == kind
        assert answer["Content-Disposition"] == f'attachment; filename="Use-i-2026-11-23.{name}"'
    assert as_(measured.charlie).get(reverse("reports:detail", args=[report.uid])).status_code == 404
    services.change(report, {"recipients": ["alice", "bob"]}, user=measured.alice, now=NOW)
    tenancy.remove_member(measured.lab, measured.bob.pk, actor=PLATFORM, now=NOW)
    browser = as_(measured.bob)
    page = browser.get(reverse("reports:detail", args=[report.uid])).content.decode()
    assert "You cannot see this report" in page
    assert browser.get(reverse("reports:pdf", args=[report.uid])).status_code == 404


def test_a_recipient_leaves_by_the_link_in_the_mail_without_signing_in(
    measured: People, mailbox: Mailbox, client: Client
) -> None:
    with_mail(measured.alice, measured.bob)
    report = made(measured, recipients=["alice", "bob"])
    services.send_due(now=MONDAY)
    notifications.send_due(now=MONDAY)
    mails = {one["To"]: one.get_body(("plain",)).get_content() for one in mailbox.messages}  # type: ignore[union-attr]
    address = re.search(r"/reports/leave/\S+", mails["bob@lab.example"])
    assert address is not None
    page = client.get(address[0]).content.decode()
    assert "Leave the report Use?" in page
    assert {user.username for user in selectors.recipients(report)} == {"alice", "bob"}
    assert "You do not get the report Use any more." in client.post(address[0]).content.decode()
    assert [user.username for user in selectors.recipients(report)] == ["alice"]
    event = LoggedEvent.objects.get(kind="ReportChanged", subject=f"report:{report.uid}")
    assert event.actor_name == "bob"
    assert event.payload["changes"]["recipients"] == {"old": ["alice", "bob"], "new": ["alice"]}
    assert client.post(address[0]).status_code == 404
    assert client.get(address[0][:-2] + "x/").status_code == 404
