"""Bidirectional controls in names, logs and texts are shown, so that no text looks different from what it is."""

import io
import json
from collections.abc import Callable
from contextlib import nullcontext
from datetime import timedelta
from typing import Any
from urllib.parse import unquote

import pytest
from django.core.mail import EmailMessage
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import User
from hekla.apps.invitations import mail as invitation_mail
from hekla.apps.invitations import services as invitations
from hekla.apps.jobs import selectors as jobs
from hekla.apps.notifications import labels, outgoing
from hekla.apps.notifications.choices import Moment
from hekla.apps.notifications.models import Delivery, Notification, Preference
from hekla.apps.tenancy.models import Tenant
from hekla.backends import logs
from hekla.backends.logs import LogText
from hekla.cli import output
from hekla.lib import clock
from hekla.lib.text import escape_bidi_in_json, show_bidi_controls, show_bidi_in_html, strip_control_codes
from hekla.live import logs as live_logs
from hekla.live import registry, subscriptions
from hekla.live.guard import Visitor
from hekla.live.registry import LiveView
from hekla.live.subscriptions import LiveQuery
from hekla.pages.frame import downloads, plots

As = Callable[[User], Client]
HIDDEN, VISIBLE = "a\u202egpj.exe", "a⟨U+202E⟩gpj.exe"
CONTROLS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


def test_all_controls_are_shown_by_their_number() -> None:
    text = show_bidi_controls(CONTROLS)
    assert text == "".join(f"⟨U+{ord(control):04X}⟩" for control in CONTROLS)
    assert text.isprintable()


@pytest.mark.parametrize("text", ["", "plain", "“中文” – …", "שלום عليكم", "👩\u200d🔬", "می\u200cخواهم"])
def test_other_texts_stay(text: str) -> None:
    assert show_bidi_controls(text) == strip_control_codes(text) == text
    assert show_bidi_in_html(f"<p>{text}</p>") == f"<p>{text}</p>"
    assert escape_bidi_in_json(json.dumps(text, ensure_ascii=False)) == json.dumps(text, ensure_ascii=False)


def test_values_of_fields_stay_in_html() -> None:
    fields = f'<input value="{HIDDEN}"><textarea\nrows="2">{HIDDEN}<b></textarea>'
    assert show_bidi_in_html(f"<b>{HIDDEN}</b>{fields}{HIDDEN}") == f"<b>{VISIBLE}</b>{fields}{VISIBLE}"


@pytest.mark.parametrize(
    "name",
    [
        "title",
        "alt",
        "placeholder",
        "aria-label",
        "aria-description",
        "data-confirm",
        "data-confirm-title",
        "data-label",
    ],
)
def test_attributes_that_people_read_are_visible(name: str) -> None:
    assert show_bidi_in_html(f'<b {name}="{HIDDEN}">x</b>') == f'<b {name}="{VISIBLE}">x</b>'
    assert show_bidi_in_html(f"<textarea {name}='{HIDDEN}'>{HIDDEN}</textarea>") == (
        f"<textarea {name}='{VISIBLE}'>{HIDDEN}</textarea>"
    )


@pytest.mark.parametrize("name", ["value", "href", "name", "data-copy", "data-take", "subtitle", "data-title"])
def test_attributes_that_are_sent_or_followed_stay(name: str) -> None:
    for tag in ("input", "button", "option", "a"):
        tagged = f"<{tag} {name}=\"{HIDDEN} title='x'\">"
        assert show_bidi_in_html(tagged) == tagged


def test_values_of_read_only_fields_are_visible() -> None:
    assert show_bidi_in_html(f'<input value="{HIDDEN}" readonly>') == f'<input value="{VISIBLE}" readonly>'
    assert show_bidi_in_html(f'<input readonly value="{HIDDEN}">') == f'<input readonly value="{VISIBLE}">'
    editable = f'<input title="readonly" value="{HIDDEN}">'
    assert show_bidi_in_html(editable) == editable


def test_name_is_visible_on_pages_and_stays_in_its_field(people: People, as_: As) -> None:
    accounts.create_token(people.alice, name=HIDDEN, lifetime=timedelta(days=1), now=clock.now())
    User.objects.filter(pk=people.alice.pk).update(display_name=HIDDEN)
    page = as_(people.alice).get(reverse("accounts:profile"))
    assert f"<strong>{VISIBLE}</strong>" in page.text
    assert f'value="{HIDDEN}"' in page.text
    assert page.headers["Content-Length"] == str(len(page.content))


def test_name_is_visible_in_page_titles_and_attributes(people: People, as_: As) -> None:
    Tenant.objects.filter(pk=people.lab.pk).update(name=HIDDEN)
    page = as_(people.alice).get(reverse("tenancy:detail", args=["lab"])).text
    assert VISIBLE in page.partition("<title>")[2].partition("</title>")[0]
    assert f'<summary title="Tenant: {VISIBLE}">' in page
    assert HIDDEN not in page


def test_name_is_visible_in_mails(people: People, mailoutbox: list[EmailMessage]) -> None:
    people.lab.name = HIDDEN
    invitation, _secret = invitations.invite(people.lab, role="viewer", by=people.ada, now=clock.now(), email="d@e.org")
    invitation_mail.deliver(invitation, "https://hekla.example.org/x")
    assert [(VISIBLE in mail.subject, VISIBLE in mail.body) for mail in mailoutbox] == [(True, True)]
    assert not any(HIDDEN in text for mail in mailoutbox for text in (mail.subject, mail.body))


def test_name_is_visible_in_notifications() -> None:
    notification = Notification(moment=Moment.STARTED, job_name=HIDDEN)
    assert labels.sentence(notification) == f"{VISIBLE} is running."


def test_webhook_shows_controls_and_means_the_same(people: People) -> None:
    notification = Notification(user=people.alice, moment=Moment.FAILED, job_name="x", at=clock.now())
    notification.facts = {"message": HIDDEN}
    body = outgoing._body(Preference(), Delivery(notification=notification)).decode()
    assert HIDDEN not in body
    assert json.loads(body)["facts"] == {"message": HIDDEN}


def test_file_name_of_a_download_is_visible() -> None:
    for response in (downloads.attach(HttpResponse(), f"{HIDDEN}.log"), downloads.manifest("", HIDDEN)):
        assert unquote(response.headers["Content-Disposition"]).startswith(f"attachment; filename*=utf-8''{VISIBLE}.")
    assert downloads.manifest("", "a").headers["Content-Disposition"] == 'attachment; filename="a.yaml"'


def test_names_in_plots_are_visible() -> None:
    figure = plots.new_figure()
    figure.add_scatter(x=[1], y=[1], name=HIDDEN)
    assert json.loads(plots.to_json(figure))["figure"]["data"][0]["name"] == VISIBLE


def test_json_of_the_api_shows_controls_and_means_the_same(people: People, as_: As) -> None:
    accounts.create_token(people.alice, name=HIDDEN, lifetime=timedelta(days=1), now=clock.now())
    answer = as_(people.alice).get("/api/v1/tokens")
    assert "a\\u202egpj.exe" in answer.text
    assert HIDDEN not in answer.text
    assert [token["name"] for token in answer.json()] == [HIDDEN]


def test_live_parts_show_controls(people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    view = LiveView(lambda *_: frozenset(), lambda *_: f"<p>{HIDDEN}</p>", lambda *_: "everybody")
    monkeypatch.setattr(registry, "find", lambda _name: (view,))
    monkeypatch.setattr(subscriptions, "_snapshot", nullcontext)  # the test is in a transaction already
    visitor = Visitor(people.alice.pk, None)
    key = subscriptions.resolve(visitor, LiveQuery("greeting", frozenset(), "en"))[1][0]
    assert subscriptions.render(key, visitor)[1] == f"<p>{VISIBLE}</p>"


def test_live_logs_show_controls(people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("backend_of", "key_of"):
        monkeypatch.setattr(live_logs, name, lambda _pod: None)
    monkeypatch.setattr(logs, "read_text", lambda *_arguments, **_options: LogText(HIDDEN, 0, 11, False, False))
    monkeypatch.setattr(jobs, "pod", lambda *_arguments: type("Pod", (), {"is_final": False}))
    found: Any = live_logs.read(1, people.alice, 0)
    assert (found.text, found.next_offset) == (VISIBLE, 11)


def test_command_line_shows_controls(capsys: pytest.CaptureFixture[str]) -> None:
    output.table(("NAME",), [(HIDDEN,)], "none")
    output.as_json({"name": HIDDEN})
    table, _, document = capsys.readouterr().out.partition("{")
    assert VISIBLE in table
    assert HIDDEN not in document
    assert json.load(io.StringIO(f"{{{document}"))["name"] == HIDDEN
