"""Alert rules: they are evaluated, act with the rights of their owner, and lose nothing when the console stops."""

import json
from copy import deepcopy
from datetime import timedelta

import pytest
from tests.apps.conftest import People, make_people
from tests.support.receivers import receiver
from tests.support.shared_rows import rolled_back, undone_test

from hekla.apps.accounts import services as accounts
from hekla.apps.alerts import measures, preview, selectors, services
from hekla.apps.alerts.models import Alert, AlertAction, AlertChange, AlertRule
from hekla.apps.clusters import services as clusters
from hekla.apps.clusters.models import Cluster, ClusterHealth, Node, NodeFacts
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.notifications import labels as sentences
from hekla.apps.notifications.models import Notification
from hekla.apps.queues import services as queues
from hekla.apps.queues.models import Queue
from hekla.apps.quotas import services as quotas
from hekla.apps.quotas.models import Quota
from hekla.domain.alert_rules import AlertRuleSpec
from hekla.domain.errors import Forbidden, Invalid, Refused
from hekla.lib import clock

DOWN = {"name": "node down", "measure": "node_not_ready", "threshold": 0, "cluster": "sim"}
SIZE = {"cpu": "4", "memory": "8Gi", "pods": "10"}


@pytest.fixture(scope="module")
def shared_people(django_db_setup, django_db_blocker):
    with django_db_blocker.unblock(), rolled_back():
        yield make_people()


@pytest.fixture
def people(shared_people):
    with undone_test():
        yield deepcopy(shared_people)


def rule(people: People, *, tenant=None, user=None, **change) -> AlertRule:
    spec = AlertRuleSpec.parse({**DOWN, **change})
    return services.create(spec=spec, tenant=tenant, user=user or people.ada, now=clock.now())[0]


def report(people: People, *, ready: bool, name: str = "n1") -> None:
    facts = NodeFacts(name, SIZE, {"zone": "a"}, is_ready=ready)
    clusters.observe_nodes(people.cluster, [facts], now=clock.now())


def evaluate(after: float = 0) -> None:
    now = clock.now() + timedelta(seconds=after)
    services.evaluate(now=now)
    services.act_due(now=now)


def states() -> list[tuple[str, str]]:
    return list(Alert.objects.exclude(state="normal").order_by("pk").values_list("name", "state"))


def steps() -> list[tuple[str, str, str]]:
    return list(AlertChange.objects.order_by("pk").values_list("old", "new", "reason"))


def acted() -> list[tuple[str, str, str]]:
    return list(AlertAction.objects.order_by("pk").values_list("kind", "moment", "result"))


def test_a_node_that_fails_is_cordoned_and_people_are_notified_until_it_recovers(people):
    people_to_tell = {"kind": "notify", "roles": ["operators"], "people": ["alice"]}
    found = rule(people, actions=[people_to_tell, {"kind": "cordon", "undo": True}])
    evaluate()
    assert states() == []
    report(people, ready=False)
    evaluate()
    assert states() == [("n1 (sim)", "firing")]
    assert Node.objects.get().is_cordoned
    assert acted() == [("notify", "fire", "done"), ("cordon", "fire", "done")]
    notices = {one.user.username: sentences.sentence(one) for one in Notification.objects.select_related("user")}
    assert notices == dict.fromkeys(["ada", "alice"], "Alert node down: n1 (sim). Value 1, threshold 0.")
    assert Notification.objects.first().page == f"/alerts/{found.uid}/"
    report(people, ready=True)
    evaluate()
    assert states() == []
    assert not Node.objects.get().is_cordoned
    assert steps() == [("normal", "firing", "breach"), ("firing", "normal", "clear")]
    assert acted()[2:] == [("notify", "clear", "done"), ("cordon", "clear", "done")]
    kinds = LoggedEvent.objects.filter(subject=f"alert-rule:{found.uid}").order_by("pk").values_list("kind", flat=True)
    assert list(kinds) == ["AlertRuleCreated", "AlertFired", *["AlertActed"] * 2, "AlertCleared", *["AlertActed"] * 2]
    cordoned = LoggedEvent.objects.filter(kind="NodeChanged", actor_name="ada").first()
    assert cordoned.who == "ada (from alert rule node down)"


def test_what_was_so_before_is_not_undone(people):
    rule(people, actions=[{"kind": "cordon", "undo": True}])
    clusters.cordon(Node.objects.get(), cordoned=True, actor=PLATFORM, now=clock.now())
    report(people, ready=False)
    evaluate()
    report(people, ready=True)
    evaluate()
    assert acted() == [("cordon", "fire", "already"), ("cordon", "clear", "nothing")]
    assert Node.objects.get().is_cordoned


def test_actions_happen_once_whoever_evaluates_and_how_often(people):
    rule(people, actions=[{"kind": "notify", "roles": ["owner"]}])
    report(people, ready=False)
    for _ in range(3):
        services.evaluate(now=clock.now())
    assert AlertAction.objects.count() == 1
    for _ in range(3):
        services.act_due(now=clock.now())
    assert Notification.objects.count() == 1


def test_a_rack_that_fails_is_one_message_and_changes_have_a_limit(people):
    for number in range(5):
        report(people, ready=False, name=f"r{number}")
    rule(people, actions=[{"kind": "notify", "roles": ["owner"]}, {"kind": "cordon"}], actions_per_hour=2)
    evaluate()
    assert Alert.objects.filter(state="firing").count() == 5
    assert "r0 (sim) and 4 more" in sentences.sentence(Notification.objects.get())
    assert Node.objects.filter(is_cordoned=True).count() == 2
    assert AlertAction.objects.filter(error="The limit of actions per hour is reached.").count() == 3


def test_rights_are_those_of_the_owner_at_the_time_of_the_action(people):
    otto = accounts.create_user(
        username="otto", password=None, platform_role="operator", actor=PLATFORM, now=clock.now()
    )
    rule(people, user=otto, actions=[{"kind": "cordon"}])
    accounts.change_user(otto, {"platform_role": ""}, password=None, actor=PLATFORM, now=clock.now())
    report(people, ready=False)
    evaluate()
    assert not Node.objects.get().is_cordoned
    assert "otto may not set this rule any more" in AlertAction.objects.get().error
    assert LoggedEvent.objects.filter(kind="AlertActed").get().payload["error"]


def test_a_silenced_rule_acts_when_the_silence_ends(people):
    found = rule(people, actions=[{"kind": "notify", "roles": ["owner"]}])
    until = clock.now() + timedelta(hours=1)
    services.silence(found, until=until, reason="maintenance", user=people.ada, now=clock.now())
    report(people, ready=False)
    evaluate()
    assert states() == [("n1 (sim)", "firing")]
    assert acted() == []
    services.silence(found, until=None, reason="", user=people.ada, now=clock.now())
    evaluate()
    assert acted() == [("notify", "fire", "done")]


def test_a_lost_cluster_is_no_data_after_a_window_and_nobody_is_notified(people):
    rule(people, actions=[{"kind": "notify", "roles": ["owner"]}])
    evaluate()
    health = {"checked_at": clock.now(), "since": clock.now(), "problem": "unreachable"}
    ClusterHealth.objects.create(cluster=people.cluster, **health)
    evaluate(after=1)
    evaluate(after=60)
    assert states() == []
    evaluate(after=122)
    assert states() == [("sim", "no_data")]
    assert acted() == []
    ClusterHealth.objects.all().delete()
    Cluster.objects.update(created_at=clock.now() + timedelta(seconds=130))
    evaluate(after=130)
    assert states() == []
    assert steps() == [("normal", "no_data", "no_data"), ("no_data", "normal", "data")]


def test_a_node_that_is_removed_ends_its_alert_with_that_reason(people):
    rule(people)
    report(people, ready=False)
    evaluate()
    clusters.forget_nodes(people.cluster, actor=PLATFORM, now=clock.now())
    evaluate()
    assert steps()[-1] == ("firing", "normal", "gone")


def test_a_change_of_the_scope_and_turning_off_end_the_alerts(people):
    found = rule(people)
    report(people, ready=False)
    evaluate()
    services.change(found, {"enabled": False}, user=people.ada, now=clock.now())
    assert steps()[-1] == ("firing", "normal", "rule")
    services.change(found, {"enabled": True, "node_label": "zone=b"}, user=people.ada, now=clock.now())
    evaluate()
    assert states() == []
    services.change(found, {"node_label": "zone"}, user=people.ada, now=clock.now())
    evaluate()
    assert states() == [("n1 (sim)", "firing")]


def test_a_full_queue_is_held_and_opened_again(people):
    hold = {"kind": "hold_queue", "undo": True}
    rule(people, measure="jobs_waiting", queue="default", cluster="", threshold=1, actions=[hold])
    people.submit("one")
    people.submit("two")
    evaluate()
    assert Queue.objects.get(name="default").is_draining
    Job.objects.update(phase="completed")
    evaluate()
    assert Queue.objects.get(name="default").is_open


def test_a_tenants_rule_aborts_its_jobs_that_run_for_too_long_and_no_others(people):
    found = rule(
        people, tenant=people.lab, user=people.alice, measure="run_hours", threshold=2, actions=[{"kind": "stop_job"}]
    )
    job = people.submit("long")
    started = clock.now() - timedelta(hours=3)
    Job.objects.filter(pk=job.pk).update(phase="running", started_at=started)
    evaluate()
    job.refresh_from_db()
    assert job.phase in {"aborting", "aborted"}
    assert LoggedEvent.objects.get(kind="JobCommanded").who == "alice (from alert rule node down)"
    assert found in selectors.visible_to(people.bob)
    assert found not in selectors.visible_to(people.charlie)


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"measure": "nothing"}, "measure"),
        ({"cluster": "moon"}, "cluster"),
        ({"queue": "default", "cluster": ""}, "queue"),
        ({"actions": [{"kind": "hold_queue"}]}, "actions.0.queue"),
        ({"actions": [{"kind": "stop_job"}]}, "actions.0"),
        ({"actions": [{"kind": "notify"}]}, "actions.0.people"),
        ({"actions": [{"kind": "notify", "people": ["nobody"]}]}, "actions.0.people"),
        ({"actions": [{"kind": "webhook", "url": "http://127.0.0.1/"}]}, "actions.0.url"),
        ({"actions": [{"kind": "webhook", "url": "http://169.254.169.254/latest"}]}, "actions.0.url"),
        ({"actions": [{"kind": "webhook", "url": "file:///etc/passwd"}]}, "actions.0.url"),
    ],
)
def test_rules_that_cannot_work_are_refused(people, change, path):
    with pytest.raises(Invalid) as raised:
        rule(people, **change)
    assert [one.path for one in raised.value.problems] == [path]


def test_tenant_admins_set_rules_about_their_tenant_only(people):
    waiting = {"measure": "jobs_waiting", "cluster": "", "threshold": 5}
    rule(people, tenant=people.lab, user=people.alice, **waiting)
    for tenant, user in ((None, people.alice), (people.other, people.alice), (people.lab, people.bob)):
        with pytest.raises(Forbidden):
            rule(people, tenant=tenant, user=user, **waiting)
    with pytest.raises(Invalid, match="Only rules about the platform"):
        rule(people, tenant=people.lab, user=people.alice, name="other")
    hold = [{"kind": "hold_queue"}]
    with pytest.raises(Invalid, match="Rules about a tenant cannot do this"):
        rule(people, tenant=people.lab, user=people.alice, **{**waiting, "name": "hold", "actions": hold})
    with pytest.raises(Refused, match="exists already"):
        rule(people, tenant=people.lab, user=people.alice, **waiting)


def test_a_webhook_is_signed_retried_and_has_one_id(people, settings):
    settings.WEBHOOKS_MAY_BE_PRIVATE = True
    report(people, ready=False)
    with receiver() as hook:
        hook.status = 500
        rule(people, actions=[{"kind": "webhook", "url": hook.url}])
        evaluate()
        action = AlertAction.objects.get()
        assert (action.done_at, action.attempts) == (None, 1)
        assert "500" in action.error
        hook.status = 200
        services.act_due(now=action.due_at)
        action.refresh_from_db()
        assert action.done_at
        first, second = [json.loads(one.body) for one in hook.requests]
        assert first == second
        assert first["id"] == str(action.uid)
        assert first["subjects"][0]["name"] == "n1 (sim)"
        assert hook.requests[0].headers["Hekla-Signature"].startswith("t=")


def test_every_measure_reads_its_subjects_in_few_queries(people, django_assert_max_num_queries):
    people.submit("one")
    for measure in measures.offered(for_tenant=False):
        for cluster in ("", "sim"):
            spec = AlertRuleSpec.parse({**DOWN, "measure": measure.name, "cluster": cluster})
            with django_assert_max_num_queries(6):
                found = preview.now_of(spec, None, now=clock.now())
            assert {one.subject.kind for one in found.values} <= {measure.subject}
            past = preview.past_of(spec, None, now=clock.now())
            assert past.is_possible == (measure.past is not None)


def test_measures_have_the_values_of_the_rows(people):
    size = {"cpu": "64", "memory": "64Gi", "pods": "10", "nvidia.com/gpu": "8"}
    clusters.observe_nodes(people.cluster, [NodeFacts("gpu", size, {})], now=clock.now())
    waiting, failed = people.submit("waits"), people.submit("failed")
    Job.objects.filter(pk=waiting.pk).update(submitted_at=clock.now() - timedelta(minutes=30))
    Job.objects.filter(pk=failed.pk).update(phase="failed", finished_at=clock.now() - timedelta(minutes=5))
    queues.change(people.queue, {"guarantee": {"cpu": "2"}}, by=people.ada, actor=PLATFORM, now=clock.now())
    bounds = {"resources": {"cpu": "4"}}
    quotas.set_quota(
        tenant=people.lab, of=Quota.Of.TENANT, user=None, bounds=bounds, by=people.ada, actor=PLATFORM, now=clock.now()
    )
    pod = {"task": "main", "index": 0, "attempt": 1, "version": 1, "slot": 0, "address": "a", "node": "n1"}
    Pod.objects.create(job=waiting, phase="running", created_at=clock.now(), **pod)

    def value(name, subject, tenant=None, **change):
        spec = AlertRuleSpec.parse({**DOWN, "measure": name, **change})
        found = preview.now_of(spec, tenant, now=clock.now())
        return next(round(one.value) for one in found.values if one.subject.name == subject)

    assert value("gpus_free", "sim") == 100
    assert value("nodes_not_ready", "sim") == 0
    assert value("jobs_waiting", "default") == value("jobs_waiting", "default", people.lab) == 1
    assert value("jobs_waiting", "default", people.other) == 0
    assert value("oldest_waiting", "default") == 30
    assert value("failed_jobs_of_queue", "default") == value("failed_jobs_of_tenant", "Lab") == 1
    assert value("failed_jobs_of_queue", "default", window_minutes=4) == 0
    assert value("over_guarantee", "default") == 50
    assert value("quota_used", "Lab") == 25


def test_a_rule_is_tested_on_the_past(people):
    for ready in (False, True, False):
        report(people, ready=ready)
    found = preview.past_of(AlertRuleSpec.parse(DOWN), None, now=clock.now())
    assert (found.is_possible, found.count) == (True, 2)
    assert [episode.until is None for episode in found.episodes] == [True, False]
