"""Lifecycle messages: stored as facts, in English as written, and translated for the reader."""

from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse
from django.utils import translation
from tests.apps.conftest import People

from hekla.apps.accounts.models import User
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.job_history import messages
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job
from hekla.domain.lifecycle.messages import ENGLISH, FactMessage, fact, facts_in
from hekla.domain.policies import LifecycleAction
from hekla.lib import clock

As = Callable[[User], Client]
FACTS: dict[str, list[dict[str, Any]]] = {
    "pods_run": [{"running": 2, "replicas": 3}],
    "pods_succeeded": [{"succeeded": 3, "replicas": 3}],
    "as_many_as_asked": [{"succeeded": 2}],
    "successes_asked": [{"asked": 4}],
    "task_needed": [{"task": "ps", "needed": 2, "had": 1}],
    "too_few_at_work": [{"pending": 1, "minimum": 3}, {"pending": 2, "minimum": 3}],
    "pod_failed": [
        {"pod": "w-1", "exit_code": code, "lost": lost, "others": others}
        for code in (None, 1)
        for lost in (False, True)
        for others in (0, 1, 3)
    ],
    "no_policy": [{}],
    "never_begun": [{"task": "train", "others": "ps, data"}],
    "restart_asked": [{}],
    "restart_counted": [{"count": 1, "limit": 3}],
    "restart_delayed": [{"seconds": 10, "failures": 2}],
    "restarted_often": [{"times": 1}, {"times": 3}],
    "old_pods_gone": [{}],
    "resumed": [{}],
    "all_stopped": [{}],
    "can_be_resumed": [{}],
    "out_of_time": [{"seconds": 5400}],
}


def test_every_fact_is_covered() -> None:
    assert set(FACTS) == set(ENGLISH) == set(messages.SENTENCES)


@pytest.mark.parametrize(("code", "args"), [(code, args) for code, variants in FACTS.items() for args in variants])
def test_fact_is_rendered_in_english_and_chinese(code: str, args: dict[str, Any]) -> None:
    message = FactMessage(fact(code, **args))
    assert messages.render_message(facts_in(message), "") == str(message)
    with translation.override("zh-hans"):
        chinese = messages.render_message(facts_in(message), "")
    assert chinese != str(message)
    assert "%" not in chinese


def test_several_facts_are_several_sentences() -> None:
    message = FactMessage(fact("restart_asked"), fact("all_stopped"))
    assert message == "A person requested a restart. All pods have stopped."
    assert messages.render_message(facts_in(message), message) == message


@pytest.mark.parametrize("facts", [[], [{"code": "from a later version"}], [{"code": "all_stopped"}, {"code": "?"}]])
def test_unknown_facts_fall_back_to_the_stored_text(facts: list[dict[str, Any]]) -> None:
    assert messages.render_message(facts, "As it was.") == "As it was."


def test_jobs_and_events_store_facts_and_pages_render_them(people: People, as_: As) -> None:
    job = people.submit()
    services.command(job, LifecycleAction.ABORT_JOB, user=people.alice, now=clock.now())
    job.refresh_from_db()
    assert (job.message, job.message_facts) == (
        "All pods have stopped. You can resume the job.",
        [{"code": "can_be_resumed"}],
    )
    event = LoggedEvent.objects.filter(kind="JobPhaseChanged").latest("id")
    assert event.payload["message_facts"] == [{"code": "can_be_resumed"}]
    client = as_(people.alice)
    address = reverse("jobs:detail", args=[job.uid])
    assert job.message in client.get(address).content.decode()
    client.cookies[settings.LANGUAGE_COOKIE_NAME] = "zh-hans"
    page = client.get(address).content.decode()
    assert job.message not in page
    assert "可以恢复运行作业" in page


def test_old_rows_without_facts_are_rendered(people: People, as_: As) -> None:
    job = people.submit()
    Job.objects.filter(pk=job.pk).update(phase="completed", message="1 of 1 pod succeeded.")
    assert "1 of 1 pod succeeded." in as_(people.alice).get(reverse("jobs:detail", args=[job.uid])).content.decode()
