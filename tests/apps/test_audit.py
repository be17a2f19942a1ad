"""The audit log: actions of people, for those who may see them."""

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
def audited_actions(people):
    """Alice acts twice in lab, Charlie once in the other tenant, Ada once outside of tenants."""
    now = clock.now()
    people.submit("one")
    tenancy.set_retention(people.lab, log_days=3, history_days=9, actor=actor_of(people.alice), now=now)
    tenancy.set_retention(people.other, log_days=4, history_days=9, actor=actor_of(people.charlie), now=now)
    accounts.create_token(people.ada, name="ci", lifetime=timedelta(days=1), now=now)


def actions(user, **filters):
    return [(act.event.actor_name, act.event.kind) for act in audit.acts(user, audit.parse_query(filters))]


BY_ALICE = [("alice", "TenantChanged"), ("alice", "JobSubmitted")]
ALL = [("ada", "TokenCreated"), ("charlie", "TenantChanged"), *BY_ALICE]


def test_every_kind_of_event_has_words():
    assert set(KINDS) == set(events.kinds())


@pytest.mark.parametrize(
    ("name", "filters", "expected"),
    [
        ("ada", {}, ALL),
        ("alice", {}, BY_ALICE),
        ("charlie", {}, [("charlie", "TenantChanged")]),
        ("ada", {"person": "alice"}, BY_ALICE),
        ("ada", {"kind": "TenantChanged"}, [("charlie", "TenantChanged"), ("alice", "TenantChanged")]),
        ("ada", {"tenant": "lab"}, BY_ALICE),
        ("alice", {"tenant": "other"}, []),
        ("alice", {"person": "charlie"}, []),
        ("ada", {"person": "nobody"}, []),
        ("ada", {"before": "x"}, ALL),
    ],
)
def test_readers_see_the_actions_in_their_tenants(people, audited_actions, name, filters, expected):
    assert actions(getattr(people, name), **filters) == expected


def test_a_viewer_is_refused(people, audited_actions):
    with pytest.raises(Forbidden, match="Only tenant admins"):
        actions(people.bob)


def test_audit_is_paged(people, audited_actions, as_, monkeypatch):
    monkeypatch.setattr(audit, "PAGE", 3)
    first = as_(people.ada).get(reverse("audit"))
    assert [act.event.kind for act in first.context["acts"]] == [kind for _, kind in ALL[:3]]
    older = f"?before={first.context['older']}"
    assert older in first.content.decode()
    second = as_(people.ada).get(reverse("audit") + older)
    assert [act.event.kind for act in second.context["acts"]] == ["JobSubmitted"]
    assert "Job submitted" in second.content.decode()


def test_rest_returns_the_same_actions(people, audited_actions, as_):
    query = {"limit": 1, "kind": "TokenCreated"}
    newest = as_(people.ada).get(reverse("api:v1:audit"), query).json()
    assert newest == [newest[0] | {"person": "ada", "kind": "TokenCreated", "tenant": None}], newest
    assert newest[0]["facts"]["name"] == "ci"
    older = as_(people.ada).get(reverse("api:v1:audit"), {"before": newest[0]["number"], "limit": 1}).json()
    assert (older[0]["person"], older[0]["tenant"]) == ("charlie", "other")


def test_labels_are_translated_and_user_input_is_not(people, as_):
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
    assert read[0]["facts"]["role"] == "viewer", "REST returns the stored value"


def test_phases_are_translated_and_unknown_kinds_are_unchanged():
    with translation.override("zh-hans"):
        assert describe_value("JobPhaseChanged", "new", "running") == "运行中"
        assert describe_value("GoneKind", "new", "running") == "running"
        assert describe_value("QuotaSet", "changes", {"jobs": {"new": 5}}) == '{"jobs": {"new": 5}}'


def test_instants_and_lists_are_readable():
    assert describe_value("TokenCreated", "expires_at", "2026-12-22T06:25:11.903164Z") == "2026-12-22 06:25 UTC"
    assert describe_value("TokenCreated", "scopes", ["read", "jobs"]) == "read, jobs"
