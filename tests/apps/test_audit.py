"""The audit log: actions of people, for those who may see them."""

import csv
import io
from datetime import UTC, datetime, timedelta
from string import Formatter

import pytest
from asgiref.sync import async_to_sync
from django.urls import reverse
from django.utils import translation
from django.utils.safestring import SafeString
from django.utils.timezone import localdate
from tests.apps.shared_people import db, people, shared_people

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.services import actor_of
from hekla.apps.audit import selectors as audit
from hekla.apps.audit import sentences
from hekla.apps.audit.values import describe_value
from hekla.apps.event_log import selectors as event_log
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.event_log.services import Actor
from hekla.apps.event_log.words import KINDS
from hekla.apps.jobs import services as jobs
from hekla.apps.priorities import services as priorities
from hekla.apps.queues import services as queues
from hekla.apps.quotas import services as quotas
from hekla.apps.quotas.models import Quota
from hekla.apps.tenancy import services as tenancy
from hekla.domain import events
from hekla.domain.errors import Forbidden
from hekla.domain.policies import LifecycleAction
from hekla.lib import clock
from hekla.pages.audit import views
from hekla.pages.frame.time_zone import COOKIE

__all__ = ["db", "people", "shared_people"]


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


def described(user, **filters):
    return [act.sentence.text for act in audit.acts(user, audit.parse_query(filters))]


BY_ALICE = [("alice", "TenantChanged"), ("alice", "JobSubmitted")]
ALL = [("ada", "TokenCreated"), ("charlie", "TenantChanged"), *BY_ALICE]


def test_every_kind_of_event_has_words():
    assert set(KINDS) == set(events.kinds())


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_every_kind_of_event_is_a_sentence_about_its_fields(language):
    """All places are fields of the kind, so that none is empty, and no kind gets the sentence for unknown kinds."""
    with translation.override(language):
        for kind in events.kinds():
            event = LoggedEvent(kind=kind, subject="job:1", actor_id=1, actor_name="ada", payload={})
            found = sentences.sentence(event, "queue vision")
            names = {name for _, name, _, _ in Formatter().parse(found.template) if name}
            assert kind in sentences.SENTENCES, kind
            assert names <= {*events.fields_of(kind), *EXTRA_PLACES}, kind
            assert "{actor}" in found.template or kind == "InvitationAccepted", kind
            assert found.html(actor=SafeString("<b>ada</b>"))
            assert found.text.endswith((".", "。", " ", "）", "：", ":")), found.text


EXTRA_PLACES = ("actor", "object", "pod", "method", "changes", "field", "old", "new")


def test_changed_amounts_have_their_own_verbs(people):
    def change(tenants=None, **values):
        who = {"by": people.ada, "actor": actor_of(people.ada), "now": clock.now()}
        queues.change(people.queue, values, tenants=tenants, allow_unknown_resources=True, **who)
        return described(people.ada, kind="QueueChanged")[0]

    assert change(capability={"nvidia.com/gpu": "8"}) == "ada set the limit of GPUs of queue default to 8."
    assert change(capability={"nvidia.com/gpu": "16"}) == "ada raised the limit of GPUs of queue default from 8 to 16."
    assert change(capability={}) == "ada removed the limit of GPUs of queue default. It was 16."
    assert change(reclaimable=False) == "ada forbade other queues to reclaim from queue default."
    assert change(weight=3, priority=2) == "ada changed queue default: weight from 1 to 3; priority from 0 to 2."
    assert change(tenants=[people.lab]) == "ada changed queue default: tenants: lab added."


def test_quotas_and_jobs_are_named(people):
    bounds = {"jobs": 4}
    who = {"by": people.ada, "actor": actor_of(people.ada), "now": clock.now()}
    quotas.set_quota(tenant=people.lab, of=Quota.Of.ONE, user=people.bob, bounds=bounds, **who)
    assert described(people.ada, kind="QuotaSet") == ["ada set the limit of unfinished jobs of bob in tenant Lab to 4."]
    job = people.submit("night-run")
    jobs.command(job, LifecycleAction.ABORT_JOB, user=people.alice, now=clock.now())
    assert "alice requested to abort job night-run." in described(people.ada, object="night")
    assert described(people.ada, object=f"job:{job.uid}") == described(people.ada, object="night-run")


@pytest.mark.parametrize("window", [1, 4000], ids=["a text in few names", "a text in many"])
def test_search_by_name_finds_the_newest_first(people, monkeypatch, window):
    monkeypatch.setattr(event_log, "_WINDOW", window)
    first = people.submit("abca-1")
    people.submit("abca-2")
    people.submit("bca-abc")  # with the same letters
    jobs.command(first, LifecycleAction.ABORT_JOB, user=people.alice, now=clock.now())
    found = audit.acts(people.ada, audit.parse_query({"object": "abca"}), most=4)
    assert [act.object.name for act in found] == ["abca-1", "abca-1", "abca-1", "abca-2"]
    assert found[-1].event.kind == "JobSubmitted"
    assert actions(people.ada, object="abca", kind="JobSubmitted") == [("alice", "JobSubmitted")] * 2


def test_deleted_objects_are_named_without_a_link(people, as_):
    who = {"actor": actor_of(people.ada), "now": clock.now()}
    made = priorities.create(name="urgent", values={"value": 5}, **who)
    address = f'href="{reverse("priorities:edit", args=["urgent"])}"'
    assert address in as_(people.ada).get(reverse("audit")).content.decode()
    priorities.delete(made, **who)
    page = as_(people.ada).get(reverse("audit")).content.decode()
    assert "deleted priority class urgent" in page
    assert address not in page


def test_names_are_escaped_and_braces_are_text(people, as_):
    accounts.create_token(people.ada, name="{actor}<b>", lifetime=timedelta(days=1), now=clock.now())
    page = as_(people.ada).get(reverse("audit")).content.decode()
    assert "“{actor}&lt;b&gt;”" in page


def test_days_bound_the_list(people, audited_actions):
    day = localdate()
    assert len(actions(people.ada, since=f"{day}", until=f"{day}")) == len(ALL)
    assert actions(people.ada, until=f"{day - timedelta(days=1)}") == []
    assert actions(people.ada, since=f"{day + timedelta(days=1)}") == []
    assert actions(people.ada, since="9999-12-31", until="9999-12-31") is not None
    assert len(actions(people.ada, since="x", until="0000-99-99")) == len(ALL)


def test_days_of_page_and_file_are_those_of_the_reader(people, as_):
    priorities.create(
        name="late", values={"value": 5}, actor=actor_of(people.ada), now=datetime(2026, 3, 1, 20, tzinfo=UTC)
    )
    client = as_(people.ada)
    client.cookies[COOKIE] = "Asia/Tokyo"
    for day, expected in (("2026-03-01", 0), ("2026-03-02", 1)):
        query = {"since": day, "until": day}
        assert len(client.get(reverse("audit"), query).context["entries"]) == expected
        assert _sent(client.get(reverse("audit_file"), query)).count(b"PriorityClassCreated") == expected


def _sent(answer):
    async def read():
        return b"".join([part async for part in answer.streaming_content])

    return async_to_sync(read)()


def test_link_of_a_person_finds_names_with_signs(people, as_):
    priorities.create(name="p", values={"value": 5}, actor=Actor(people.ada.pk, "a+b"), now=clock.now())
    page = as_(people.ada).get(reverse("audit")).content.decode()
    assert 'href="?person=a%2Bb"' in page


def _file(user, **filters):
    async def read():
        return "".join([text async for text in views.lines(user, audit.parse_query(filters), "en", UTC)])

    return list(csv.DictReader(io.StringIO(async_to_sync(read)())))


def test_file_has_all_pages_and_runs_no_formulas(people, audited_actions, as_, monkeypatch):
    monkeypatch.setattr(audit, "_AT_ONCE", 2)
    accounts.create_token(people.ada, name="=1+1", lifetime=timedelta(days=1), now=clock.now())
    (newest, *_) = _file(people.ada, person="ada")
    assert newest["sentence"].startswith("ada created the access token “=1+1” for ada")
    assert newest["object"] == "ada"
    assert [row["kind"] for row in _file(people.ada)] == ["TokenCreated", *(kind for _, kind in ALL)]
    tenancy.add_member(people.lab, people.charlie, "viewer", actor=Actor(people.alice.pk, "=alice"), now=clock.now())
    assert _file(people.ada)[0]["sentence"].startswith("'=alice added")
    monkeypatch.setattr(audit, "MOST_EXPORTED", 3)
    assert len(_file(people.ada)) == 3
    answer = as_(people.alice).get(reverse("audit_file"))
    assert answer.headers["Content-Disposition"].startswith('attachment; filename="audit-')
    assert as_(people.bob).get(reverse("audit_file")).status_code == 403


def test_page_needs_few_queries(people, audited_actions, as_, django_assert_max_num_queries):
    client = as_(people.ada)
    with django_assert_max_num_queries(12):
        client.get(reverse("audit"))


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
    assert [entry.event.kind for entry in first.context["entries"]] == [kind for _, kind in ALL[:3]]
    older = f"?before={first.context['older']}"
    assert older in first.content.decode()
    second = as_(people.ada).get(reverse("audit") + older)
    assert [entry.event.kind for entry in second.context["entries"]] == ["JobSubmitted"]
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
    found = described(people.alice, person="alice")[:2]
    assert found == [
        "alice changed the role of charlie in tenant Lab from Viewer to Member.",
        "alice added charlie to tenant Lab as Viewer.",
    ]
    with translation.override("zh-hans"):
        assert "查看者" in described(people.alice, person="alice")[1]
    read = as_(people.alice).get(reverse("api:v1:audit"), {"kind": "MemberAdded"}).json()
    assert read[0]["facts"]["role"] == "viewer", "REST returns the stored value"
    assert read[0]["sentence"] == found[1]


def test_phases_are_translated_and_unknown_kinds_are_unchanged():
    with translation.override("zh-hans"):
        assert describe_value("JobPhaseChanged", "new", "running") == "运行中"
        assert describe_value("GoneKind", "new", "running") == "running"


def test_instants_and_lists_are_readable():
    assert describe_value("TokenCreated", "expires_at", "2026-12-22T06:25:11.903164Z") == "2026-12-22 06:25 UTC"
    assert describe_value("TokenCreated", "scopes", ["read", "jobs"]) == "read, jobs"
