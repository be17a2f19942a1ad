"""Messages of the lifecycle: English text together with the facts that it states.

Rows and events store both. Pages render the facts in the reader's language; programs read the English text.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Fact:
    """One sentence as data: its code in `ENGLISH`, and its arguments (JSON values only)."""

    code: str
    args: Mapping[str, Any]

    def data(self) -> dict[str, Any]:
        """As stored in rows and events."""
        return {"code": self.code, **self.args}


class FactMessage(str):
    """English text with the facts that it was made from."""

    facts: tuple[Fact, ...]

    def __new__(cls, *facts: Fact) -> "FactMessage":
        """Join the sentences of these facts."""
        text = super().__new__(cls, " ".join(ENGLISH[fact.code](fact.args) for fact in facts))
        text.facts = facts
        return text


def fact(code: str, **args: Any) -> Fact:  # noqa: ANN401  (whatever JSON knows)
    """A fact; its code is a key of ENGLISH."""
    return Fact(code, args)


def facts_in(text: str) -> list[dict[str, Any]]:
    """The facts of a message, as stored beside its text; empty for plain text."""
    return [fact.data() for fact in text.facts] if isinstance(text, FactMessage) else []


def _pod_failed(args: Mapping[str, Any]) -> str:
    """“worker-1 failed with exit code 1, and 3 other pods failed too.”"""
    code = f" with exit code {args['exit_code']}" if args["exit_code"] is not None else ""
    how = "was lost" if args["lost"] else f"failed{code}"
    others = args["others"]
    more = f", and {others} other pod{'s' if others > 1 else ''} failed too" if others else ""
    return f"{args['pod']} {how}{more}."


def _too_few_at_work(args: Mapping[str, Any]) -> str:
    pods = "1 pod is" if args["pending"] == 1 else f"{args['pending']} pods are"
    return f"{pods} pending. Fewer than {args['minimum']} are running."


def _restarted_often(args: Mapping[str, Any]) -> str:
    times = "once" if args["times"] == 1 else f"{args['times']} times"
    return f"The job was restarted {times}, the maximum."


def _of_pods(args: Mapping[str, Any], count: str, one: str, many: str) -> str:
    """“1 of 1 pod succeeded.”, “2 of 3 pods succeeded.”"""
    return f"{args[count]} of {args['replicas']} {one if args['replicas'] == 1 else many}."


def _out_of_time(args: Mapping[str, Any]) -> str:
    """“The job reached its time limit of 1 h 30 min, including restarts.”"""
    seconds = args["seconds"]
    parts = ((seconds // 3600, "h"), (seconds // 60 % 60, "min"), (seconds % 60, "s"))
    long = " ".join(f"{number} {unit}" for number, unit in parts if number)
    return f"The job reached its time limit of {long}, including restarts."


def _plain(sentence: str) -> Callable[[Mapping[str, Any]], str]:
    return sentence.format_map


ENGLISH: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "pods_run": lambda args: _of_pods(args, "running", "pod is running", "pods are running"),
    "pods_succeeded": lambda args: _of_pods(args, "succeeded", "pod succeeded", "pods succeeded"),
    "as_many_as_asked": _plain("{succeeded} pods succeeded, as required."),
    "successes_asked": _plain("{asked} successes were required."),
    "task_needed": _plain("Task {task} needed {needed} successes and had {had}."),
    "too_few_at_work": _too_few_at_work,
    "pod_failed": _pod_failed,
    "no_policy": _plain(
        "No policy covers this, so the other pods continue. The job's result is known when all have finished."
    ),
    "never_begun": _plain("{task} never started: it waited for {others}."),
    "restart_asked": _plain("A person requested a restart."),
    "restart_counted": _plain("Restart {count} of {limit}."),
    "restart_delayed": _plain("It waits {seconds} s, because the pod failed {failures} times in a row."),
    "restarted_often": _restarted_often,
    "out_of_time": _out_of_time,
    "old_pods_gone": _plain("The old pods stopped."),
    "resumed": _plain("Succeeded pods are kept. The others run again."),
    "all_stopped": _plain("All pods have stopped."),
    "can_be_resumed": _plain("All pods have stopped. You can resume the job."),
}
