"""Messages of the lifecycle in the reader's language; a message without facts stays as it was written."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from hekla.apps.job_history import labels
from hekla.apps.jobs.models import Job
from hekla.apps.sentences import together
from hekla.domain.phases import JobPhase

Facts = Mapping[str, Any]


def of_job(job: Job) -> str:
    """Why the job is in its phase: its message, or else its reason.

    If other facts say why a job failed, how many of its pods succeeded is no reason.
    """
    facts = job.message_facts
    if job.phase == JobPhase.FAILED:
        facts = [fact for fact in facts if fact["code"] != "pods_succeeded"] or facts
    return render_message(facts, job.message) or job.reason


def render_message(facts: Sequence[Facts], message: str) -> str:
    """The facts as sentences. If there are none, or this version does not know one, the message unchanged."""
    if not facts or any(fact["code"] not in SENTENCES for fact in facts):
        return message
    return together(SENTENCES[fact["code"]](fact) for fact in facts)


def _pods_run(facts: Facts) -> str:
    sentence = ngettext(
        "%(running)s of %(replicas)s pod is running.",
        "%(running)s of %(replicas)s pods are running.",
        facts["replicas"],
    )
    return sentence % facts


def _pods_succeeded(facts: Facts) -> str:
    sentence = ngettext(
        "%(succeeded)s of %(replicas)s pod succeeded.",
        "%(succeeded)s of %(replicas)s pods succeeded.",
        facts["replicas"],
    )
    return sentence % facts


def _min_available_reached(facts: Facts) -> str:
    return _("%(succeeded)s pods succeeded, as required.") % facts


def _min_success_reached(facts: Facts) -> str:
    return _("%(asked)s successes were required.") % facts


def _task_needed(facts: Facts) -> str:
    return _("Task %(task)s needed %(needed)s successes and had %(had)s.") % facts


def _too_few_at_work(facts: Facts) -> str:
    sentence = ngettext(
        "%(pending)s pod is pending. Fewer than %(minimum)s are running.",
        "%(pending)s pods are pending. Fewer than %(minimum)s are running.",
        facts["pending"],
    )
    return sentence % facts


def _pod_failed(facts: Facts) -> str:
    others = facts["others"]
    if facts["lost"]:
        one = _("%(pod)s was lost.")
        more = ngettext(
            "%(pod)s was lost, and %(others)s other pod failed too.",
            "%(pod)s was lost, and %(others)s other pods failed too.",
            others,
        )
    elif facts["exit_code"] is None:
        one = _("%(pod)s failed.")
        more = ngettext(
            "%(pod)s failed, and %(others)s other pod failed too.",
            "%(pod)s failed, and %(others)s other pods failed too.",
            others,
        )
    else:
        one = _("%(pod)s failed with exit code %(exit_code)s.")
        more = ngettext(
            "%(pod)s failed with exit code %(exit_code)s, and %(others)s other pod failed too.",
            "%(pod)s failed with exit code %(exit_code)s, and %(others)s other pods failed too.",
            others,
        )
    return (more if others else one) % facts


def _no_policy(_facts: Facts) -> str:
    return _("No policy covers this, so the other pods continue. The job's result is known when all have finished.")


def _never_started(facts: Facts) -> str:
    return _("%(task)s never started: it waited for %(others)s.") % facts


def _restart_requested(_facts: Facts) -> str:
    return _("A person requested a restart.")


def _restart_counted(facts: Facts) -> str:
    return _("Restart %(count)s of %(limit)s.") % facts


def _restart_delayed(facts: Facts) -> str:
    return _("It waits %(long)s, because the pod failed %(failures)s times in a row.") % {
        "long": labels.duration(facts["seconds"]),
        "failures": facts["failures"],
    }


def _restarted_often(facts: Facts) -> str:
    sentence = ngettext(
        "The job was restarted once, the maximum.",
        "The job was restarted %(times)s times, the maximum.",
        facts["times"],
    )
    return sentence % facts


def _out_of_time(facts: Facts) -> str:
    return _("The job reached its time limit of %(long)s, including restarts.") % {
        "long": labels.duration(facts["seconds"])
    }


def _old_pods_gone(_facts: Facts) -> str:
    return _("The old pods stopped.")


def _resumed(_facts: Facts) -> str:
    return _("Succeeded pods are kept. The others run again.")


def _all_stopped(_facts: Facts) -> str:
    return _("All pods have stopped.")


def _can_be_resumed(_facts: Facts) -> str:
    return _("All pods have stopped. You can resume the job.")


SENTENCES: dict[str, Callable[[Facts], str]] = {
    "pods_run": _pods_run,
    "pods_succeeded": _pods_succeeded,
    "as_many_as_asked": _min_available_reached,
    "successes_asked": _min_success_reached,
    "task_needed": _task_needed,
    "too_few_at_work": _too_few_at_work,
    "pod_failed": _pod_failed,
    "no_policy": _no_policy,
    "never_begun": _never_started,
    "restart_asked": _restart_requested,
    "restart_counted": _restart_counted,
    "restart_delayed": _restart_delayed,
    "restarted_often": _restarted_often,
    "out_of_time": _out_of_time,
    "old_pods_gone": _old_pods_gone,
    "resumed": _resumed,
    "all_stopped": _all_stopped,
    "can_be_resumed": _can_be_resumed,
}
