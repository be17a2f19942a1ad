"""What alert rules do and undo: late, twice, beside people and other rules, and within limits."""

import threading
from copy import deepcopy
from datetime import timedelta
from typing import Any

import pytest
from tests.apps.conftest import People, make_people
from tests.support.receivers import receiver
from tests.support.shared_rows import rolled_back, undone_test

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.services import actor_of
from hekla.apps.alerts import services, tasks
from hekla.apps.alerts.models import Alert, AlertAction, AlertRule
from hekla.apps.alerts.services import planning
from hekla.apps.clusters import services as clusters
from hekla.apps.clusters.models import Node, NodeFacts
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs import services as job_services
from hekla.apps.jobs.models import Job
from hekla.apps.notifications import addresses, labels
from hekla.apps.notifications.models import Notification
from hekla.apps.queues.models import Queue
from hekla.domain.alert_rules import AlertRuleSpec
from hekla.domain.errors import Forbidden, Refused
from hekla.lib import clock

DOWN = {"name": "node down", "measure": "node_not_ready", "threshold": 0, "cluster": "sim"}
CORDON = {"kind": "cordon", "undo": True}
LABEL = {"kind": "label_node", "label": "broken", "value": "yes", "undo": True}
HOLD = {"kind": "hold_queue", "queue": "default", "undo": True}
SIZE = {"cpu": "4", "memory": "8Gi", "pods": "10"}


@pytest.fixture(scope="module")
def shared_people(django_db_setup, django_db_blocker):
    with django_db_blocker.unblock(), rolled_back():
        yield make_people()


@pytest.fixture
def people(shared_people):
    with undone_test():
        yield deepcopy(shared_people)


def rule(people: People, *, tenant=None, user=None, **change: Any) -> AlertRule:
    spec = AlertRuleSpec.parse({**DOWN, **change})
    return services.create(spec=spec, tenant=tenant, user=user or people.ada, now=clock.now())[0]


def report(people: People, *, ready: bool, name: str = "n1") -> None:
    clusters.observe_nodes(people.cluster, [NodeFacts(name, SIZE, {}, is_ready=ready)], now=clock.now())


def evaluate() -> None:
    services.evaluate(now=clock.now())
    services.act_due(now=clock.now())


def results(kind: str) -> list[tuple[str, str]]:
    return list(AlertAction.objects.filter(kind=kind).order_by("pk").values_list("moment", "result"))


def test_a_queue_is_held_until_the_last_alert_that_wants_it_clears(people):
    rule(people, actions=[HOLD])
    for name in ("n1", "n2"):
        report(people, ready=False, name=name)
        evaluate()
    report(people, ready=True, name="n1")
    evaluate()
    assert Queue.objects.get().is_draining
    report(people, ready=True, name="n2")
    evaluate()
    assert Queue.objects.get().is_open
    assert results("hold_queue") == [("fire", "done"), ("fire", "already"), ("clear", "nothing"), ("clear", "done")]


def test_a_node_stays_cordoned_while_another_rule_wants_it(people):
    rule(people, actions=[CORDON])
    rule(people, name="slow to recover", recovery_seconds=600, actions=[CORDON])
    report(people, ready=False)
    evaluate()
    report(people, ready=True)
    evaluate()
    assert Alert.objects.get().state == "recovering"
    assert Node.objects.get().is_cordoned
    begin = clock.now() - timedelta(hours=1)
    AlertRule.objects.update(watched_since=begin)
    Alert.objects.update(since=begin)
    evaluate()
    assert not Node.objects.get().is_cordoned


def test_a_later_change_by_a_person_is_not_undone(people):
    rule(people, actions=[CORDON, HOLD])
    report(people, ready=False)
    evaluate()
    for is_on in (False, True):
        clusters.cordon(Node.objects.get(), cordoned=is_on, actor=actor_of(people.ada), now=clock.now())
    Queue.objects.update(state_at=clock.now())
    report(people, ready=True)
    evaluate()
    assert Node.objects.get().is_cordoned
    assert Queue.objects.get().is_draining


def test_a_label_is_set_while_the_alert_is_open(people):
    rule(people, actions=[LABEL])
    report(people, ready=False)
    evaluate()
    assert Node.objects.get().labels == {"broken": "yes"}
    report(people, ready=True)
    evaluate()
    assert Node.objects.get().labels == {}
    assert results("label_node") == [("fire", "done"), ("clear", "done")]


def test_a_label_that_a_person_set_again_stays(people):
    rule(people, actions=[LABEL])
    report(people, ready=False)
    evaluate()
    for value in (None, "yes"):
        clusters.label_node(Node.objects.get(), {"broken": value}, actor=actor_of(people.ada), now=clock.now())
    report(people, ready=True)
    evaluate()
    assert Node.objects.get().labels == {"broken": "yes"}


def test_the_label_that_was_set_is_removed_also_if_the_rule_names_another_one_now(people):
    found = rule(people, actions=[LABEL])
    report(people, ready=False)
    evaluate()
    clusters.label_node(Node.objects.get(), {"loud": "yes"}, actor=actor_of(people.ada), now=clock.now())
    services.change(found, {"actions": [LABEL | {"label": "loud"}]}, user=people.ada, now=clock.now())
    report(people, ready=True)
    evaluate()
    assert Node.objects.get().labels == {"loud": "yes"}


def test_a_node_that_a_person_drains_meanwhile_stays_cordoned(people):
    rule(people, actions=[CORDON])
    report(people, ready=False)
    evaluate()
    job_services.drain(Node.objects.get(), reason="a new fan", user=people.ada, now=clock.now())
    report(people, ready=True)
    evaluate()
    assert Node.objects.get().is_cordoned


def test_an_action_after_the_end_of_its_alert_changes_nothing(people):
    rule(people, actions=[CORDON, HOLD])
    report(people, ready=False)
    services.evaluate(now=clock.now())
    report(people, ready=True)
    evaluate()
    assert not Node.objects.get().is_cordoned
    assert results("cordon") == results("hold_queue") == [("fire", "nothing"), ("clear", "nothing")]


def test_the_queue_that_was_held_is_opened_also_if_the_rule_names_another_one_now(people):
    found = rule(people, actions=[HOLD])
    other = Queue.objects.get()
    other.pk, other.name, other.state = None, "second", Queue.State.DRAINING
    other.save()
    report(people, ready=False)
    evaluate()
    services.change(found, {"actions": [{**HOLD, "queue": "second"}]}, user=people.ada, now=clock.now())
    report(people, ready=True)
    evaluate()
    assert dict(Queue.objects.values_list("name", "state")) == {"default": "open", "second": "draining"}


def test_an_action_that_is_done_meanwhile_is_not_done_again(people, monkeypatch):
    rule(people, actions=[CORDON])
    report(people, ready=False)
    services.evaluate(now=clock.now())
    real = services.actions._require_owner

    def done_by_another(action):
        AlertAction.objects.update(done_at=clock.now(), result="done", has_changed=True)
        real(action)

    monkeypatch.setattr(services.actions, "_require_owner", done_by_another)
    services.act_due(now=clock.now())
    assert results("cordon") == [("fire", "done")]
    assert AlertAction.objects.get().has_changed


def test_a_value_that_flaps_does_not_flood_people(people, monkeypatch):
    monkeypatch.setattr(planning, "MOST_OF_SUBJECT", 2)
    rule(people, actions=[{"kind": "notify", "roles": ["owner"]}])
    for _ in range(4):
        for ready in (False, True):
            report(people, ready=ready)
            evaluate()
    assert AlertAction.objects.filter(done_at__isnull=False).count() == 4
    assert AlertAction.objects.filter(error="The limit of messages per hour is reached.").count() == 4


def test_values_that_change_all_the_time_cost_one_statement_for_all_alerts(people, django_assert_max_num_queries):
    rule(people, tenant=people.lab, user=people.alice, measure="run_hours", threshold=2)
    for number in range(6):
        people.submit(f"long{number}")
    Job.objects.update(phase="running", started_at=clock.now() - timedelta(hours=3))
    evaluate()
    assert Alert.objects.count() == 6
    before = Alert.objects.first().value
    with django_assert_max_num_queries(14):
        services.evaluate(now=clock.now() + timedelta(seconds=60))
    assert Alert.objects.first().value > before


def test_what_pods_hold_is_read_once_for_all_rules(people, monkeypatch):
    reads = []
    monkeypatch.setattr(jobs, "held", lambda ids: reads.append(ids) or [])
    limits = {"measure": "gpus_free", "cluster": "sim", "comparison": "below", "threshold": 1}
    gpus = NodeFacts("n1", {**SIZE, "nvidia.com/gpu": "4"}, {})
    clusters.observe_nodes(people.cluster, [gpus], now=clock.now())
    for number in range(3):
        rule(people, **limits, name=f"free {number}", window_minutes=5 + number)
    evaluate()
    assert len(reads) == 1


def test_a_rule_can_be_turned_off_also_if_it_could_not_be_saved_now(people):
    otto = accounts.create_user(
        username="otto", password=None, platform_role="operator", actor=PLATFORM, now=clock.now()
    )
    found = rule(people, actions=[{"kind": "notify", "people": ["otto"]}])
    accounts.change_user(otto, {"is_active": False}, password=None, actor=PLATFORM, now=clock.now())
    services.change(found, {"enabled": False}, user=people.ada, now=clock.now())
    assert not AlertRule.objects.get().is_enabled


def test_operators_set_rules_that_abort_jobs_of_a_tenant(people):
    otto = accounts.create_user(
        username="otto", password=None, platform_role="operator", actor=PLATFORM, now=clock.now()
    )
    stop = {"measure": "run_hours", "cluster": "", "threshold": 2, "actions": [{"kind": "stop_job"}]}
    assert rule(people, tenant=people.lab, user=otto, **stop).owner == otto


def test_a_receiver_whose_name_is_unknown_is_tried_again(people, settings, monkeypatch):
    settings.WEBHOOKS_MAY_BE_PRIVATE = True
    report(people, ready=False)
    with receiver() as hook:
        rule(people, actions=[{"kind": "webhook", "url": hook.url}])
        with monkeypatch.context() as patch:
            patch.setattr(addresses, "resolve", _unknown)
            evaluate()
        action = AlertAction.objects.get()
        assert (action.done_at, action.abandoned_at) == (None, None)
        services.act_due(now=action.due_at)
        assert len(hook.requests) == 1


def _unknown(_url: str) -> addresses.Target:
    raise Refused("Cannot resolve the host.")


def test_one_evaluation_at_a_time_in_a_process(people, monkeypatch):
    began, goes_on, wakeups = threading.Event(), threading.Event(), []
    monkeypatch.setattr(tasks.evaluating, "soon", lambda: wakeups.append(1))
    monkeypatch.setattr(tasks.evaluating, "at", lambda *_arguments, **_options: None)
    monkeypatch.setattr(services, "evaluate", lambda now: began.set() or goes_on.wait(5))
    thread = threading.Thread(target=tasks.evaluate)
    thread.start()
    assert began.wait(5)
    tasks.evaluate()
    goes_on.set()
    thread.join()
    assert wakeups == [1]


def test_an_announced_change_can_be_vetoed(people):
    made = rule(people, actions=[CORDON], veto_minutes=10)
    report(people, ready=False)
    evaluate()
    assert not Node.objects.get().is_cordoned
    (announced,) = Notification.objects.filter(user=people.ada)
    assert labels.sentence(announced).startswith("Alert node down cordons n1 (sim) at ")
    change = AlertAction.objects.get(kind="cordon")
    with pytest.raises(Forbidden):
        services.veto(change, user=people.bob, now=clock.now())
    services.veto(change, user=people.ada, now=clock.now())
    services.act_due(now=clock.now() + timedelta(minutes=11))
    assert not Node.objects.get().is_cordoned
    change.refresh_from_db()
    assert change.error == "Vetoed by Ada."
    with pytest.raises(Refused):
        services.veto(change, user=people.ada, now=clock.now())
    event = LoggedEvent.objects.get(kind="AlertActionVetoed")
    assert (event.subject, event.actor_name) == (f"alert-rule:{made.uid}", "ada")


def test_a_change_that_nobody_vetoes_is_made_at_its_time(people):
    rule(people, actions=[CORDON], veto_minutes=10)
    report(people, ready=False)
    evaluate()
    services.act_due(now=clock.now() + timedelta(minutes=9))
    assert not Node.objects.get().is_cordoned
    services.act_due(now=clock.now() + timedelta(minutes=11))
    assert Node.objects.get().is_cordoned
    report(people, ready=True)
    evaluate()
    assert not Node.objects.get().is_cordoned


def test_a_change_that_waits_is_not_made_while_its_rule_is_silenced(people):
    made, now = rule(people, actions=[CORDON], veto_minutes=10), clock.now()
    report(people, ready=False)
    evaluate()
    until = now + timedelta(hours=1)
    services.silence(made, until=until, reason="New switches.", user=people.ada, now=now)
    for minutes in (11, 13, 58):
        services.act_due(now=now + timedelta(minutes=minutes))
    assert not Node.objects.get().is_cordoned
    services.silence(made, until=None, reason="", user=people.ada, now=now)
    services.act_due(now=until)
    assert Node.objects.get().is_cordoned
    assert AlertAction.objects.get(kind="cordon").attempts == 1


def test_an_alert_that_flaps_says_so_and_changes_nothing(people):
    rule(people, actions=[CORDON, {"kind": "notify", "people": ["ada"]}], actions_per_hour=50)
    for _ in range(planning.FLAPS):
        report(people, ready=False)
        evaluate()
        was_cordoned = Node.objects.get().is_cordoned
        if not was_cordoned:
            break
        report(people, ready=True)
        evaluate()
    assert not was_cordoned
    assert Alert.objects.get().is_flapping
    assert AlertAction.objects.filter(kind="cordon", moment="fire", abandoned_at=None).count() == planning.FLAPS - 1
    last = Notification.objects.filter(user=people.ada).order_by("-pk").first()
    assert labels.sentence(last).startswith("Alert node down flaps: n1 (sim).")


def test_a_rule_that_is_turned_off_undoes_what_it_changed(people):
    made = rule(people, actions=[CORDON])
    report(people, ready=False)
    evaluate()
    assert Node.objects.get().is_cordoned
    with pytest.raises(Refused):
        services.delete(made, user=people.ada, now=clock.now())
    services.change(made, {"enabled": False}, user=people.ada, now=clock.now())
    with pytest.raises(Refused):
        services.delete(made, user=people.ada, now=clock.now())
    services.act_due(now=clock.now())
    assert not Node.objects.get().is_cordoned
    services.delete(made, user=people.ada, now=clock.now())


def test_a_rule_that_does_not_undo_leaves_its_changes(people):
    made = rule(people, actions=[{"kind": "cordon"}])
    report(people, ready=False)
    evaluate()
    services.change(made, {"enabled": False}, user=people.ada, now=clock.now())
    services.act_due(now=clock.now())
    assert Node.objects.get().is_cordoned
    services.delete(made, user=people.ada, now=clock.now())
