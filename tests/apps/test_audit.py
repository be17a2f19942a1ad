"""The audit: who did what, for those who answer for it."""

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import translation

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.services import actor_of
from hekla.apps.event_log.words import KINDS
from hekla.apps.tenancy import audit
from hekla.apps.tenancy import services as tenancy
from hekla.apps.tenancy.audit_words import describe_value
from hekla.domain import events
from hekla.domain.errors import Forbidden
from hekla.lib import clock


@pytest.fixture
def deeds(people):
    """Alice does two things in the lab, Charlie one in the other tenant, Ada one that belongs to none."""
    now = clock.now()
    people.submit("one")
    tenancy.set_retention(people.lab, log_days=3, history_days=9, actor=actor_of(people.alice), now=now)
    tenancy.set_retention(people.other, log_days=4, history_days=9, actor=actor_of(people.charlie), now=now)
    accounts.create_token(people.ada, name="ci", lifetime=timedelta(days=1), now=now)


def told(user, **asked):
    return [(act.event.actor_name, act.event.kind) for act in audit.acts(user, audit.parse_query(asked))]


ALICES = [("alice", "TenantChanged"), ("alice", "JobSubmitted")]
ALL = [("ada", "TokenCreated"), ("charlie", "TenantChanged"), *ALICES]


def test_every_kind_of_event_has_words():
    assert set(KINDS) == set(events.kinds())


@pytest.mark.parametrize(
    ("name", "asked", "wanted"),
    [
        ("ada", {}, ALL),
        ("alice", {}, ALICES),
        ("charlie", {}, [("charlie", "TenantChanged")]),
        ("ada", {"person": "alice"}, ALICES),
        ("ada", {"kind": "TenantChanged"}, [("charlie", "TenantChanged"), ("alice", "TenantChanged")]),
        ("ada", {"tenant": "lab"}, ALICES),
        ("alice", {"tenant": "other"}, []),
        ("alice", {"person": "charlie"}, []),
        ("ada", {"person": "nobody"}, []),
        ("ada", {"before": "x"}, ALL),
    ],
)
def test_who_answers_for_a_tenant_knows_what_was_done_there(people, deeds, name, asked, wanted):
    assert told(getattr(people, name), **asked) == wanted


def test_a_viewer_is_refused(people, deeds):
    with pytest.raises(Forbidden, match="Only tenant admins"):
        told(people.bob)


def test_pages_follow_one_another(people, deeds, as_, monkeypatch):
    monkeypatch.setattr(audit, "PAGE", 3)
    first = as_(people.ada).get(reverse("audit"))
    assert [act.event.kind for act in first.context["acts"]] == [kind for _, kind in ALL[:3]]
    older = f"?before={first.context['older']}"
    assert older in first.content.decode()
    second = as_(people.ada).get(reverse("audit") + older)
    assert [act.event.kind for act in second.context["acts"]] == ["JobSubmitted"]
    assert "Job submitted" in second.content.decode()


def test_programs_read_the_same(people, deeds, as_):
    asked = {"limit": 1, "kind": "TokenCreated"}
    newest = as_(people.ada).get(reverse("api:v1:audit"), asked).json()
    assert newest == [newest[0] | {"person": "ada", "kind": "TokenCreated", "tenant": None}], newest
    assert newest[0]["facts"]["name"] == "ci"
    older = as_(people.ada).get(reverse("api:v1:audit"), {"before": newest[0]["number"], "limit": 1}).json()
    assert (older[0]["person"], older[0]["tenant"]) == ("charlie", "other")


def test_words_of_ours_are_said_in_the_language_of_the_page_and_what_people_wrote_as_it_is(people, as_):
    tenancy.add_member(people.lab, people.charlie, "viewer", actor=actor_of(people.alice), now=clock.now())
    tenancy.change_role(people.lab, people.charlie.pk, "member", actor=actor_of(people.alice), now=clock.now())
    for language, facts in (
        ("en", ["role: Viewer, username: charlie", "new: Member, old: Viewer, username: charlie"]),
        ("zh-hans", ["role: 查看者, username: charlie", "new: 成员, old: 查看者, username: charlie"]),
    ):
        with translation.override(language):
            found = audit.acts(people.alice, audit.parse_query({"person": "alice"}))
            assert [act.facts for act in reversed(found)][-2:] == facts
    read = as_(people.alice).get(reverse("api:v1:audit"), {"kind": "MemberAdded"}).json()
    assert read[0]["facts"]["role"] == "viewer", "programs read what was written"


def test_a_phase_is_said_and_a_kind_that_nobody_knows_any_more_is_told_as_it_is():
    with translation.override("zh-hans"):
        assert describe_value("JobPhaseChanged", "new", "running") == "运行中"
        assert describe_value("GoneKind", "new", "running") == "running"
        assert describe_value("QuotaSet", "changes", {"jobs": {"new": 5}}) == '{"jobs": {"new": 5}}'


def test_an_instant_and_a_list_are_told_as_people_write_them():
    assert describe_value("TokenCreated", "expires_at", "2026-12-22T06:25:11.903164Z") == "2026-12-22 06:25 UTC"
    assert describe_value("TokenCreated", "scopes", ["read", "jobs"]) == "read, jobs"
