"""Why experiments fail: a code and values are stored, and the sentence is made for each reader."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext, override

from hekla.apps.policy_lab.models import MAX_PROBLEM, LabRun

Values = Mapping[str, Any]
_LONGEST = 300


@dataclass(frozen=True, slots=True)
class LabProblem:
    """A reason by its code in `SENTENCES`, with its values: numbers and texts."""

    code: str
    values: Values = field(default_factory=dict)

    @property
    def facts(self) -> dict[str, Any]:
        """As stored in rows."""
        values = {name: one[:_LONGEST] if isinstance(one, str) else one for name, one in self.values.items()}
        return {"code": self.code, **values}


SENTENCES: Mapping[str, Callable[[Values], str]] = {
    "process_gone": lambda _values: _("The process that ran it stopped without an answer."),
    "process_ended": lambda values: _("Its process ended with status %(status)d.") % values,
    "process_killed": lambda values: (
        _("Its process was ended by signal %(signal)d. Maybe there was too little memory: choose a shorter period.")
        % values
    ),
    "too_long": lambda values: (
        ngettext(
            "It took more than %(minutes)d minute. Choose a shorter period.",
            "It took more than %(minutes)d minutes. Choose a shorter period.",
            values["minutes"],
        )
        % values
    ),
    "result_too_large": lambda _values: _("The result is too large."),
    "too_many_jobs": lambda values: (
        _("More than %(limit)d jobs were submitted in this period. Choose a shorter one.") % values
    ),
    "too_many_pods": lambda values: _("More than %(limit)d pods ran in this period. Choose a shorter one.") % values,
    "evicts_again": lambda _values: _("The policy evicts the same pods again and again."),
    "plugin_failed": lambda values: _("%(plugin)s failed at %(point)s: %(error)s") % values,
    "trace_deleted": lambda _values: _("Its trace was deleted."),
    "trace_fits_nowhere": lambda _values: _("No job of the trace fits on the nodes of the cluster."),
    "unknown_queues": lambda values: _("The workload has no queue %(names)s any more.") % values,
    "unknown_nodes": lambda values: _("The cluster has no node %(names)s any more.") % values,
    "refused": lambda values: _("The experiment cannot run: %(text)s") % values,
}


_EARLIER = {
    "process_gone": re.compile(r"The process that ran it stopped without an answer\."),
    "process_ended": re.compile(r"Its process ended with status (?P<status>-?\d{1,9})\."),
    "too_long": re.compile(r"It took more than (?P<minutes>\d{1,9}) minutes\."),
    "result_too_large": re.compile(r"The result is too large\."),
    "evicts_again": re.compile(r"The policy evicts the same pods again and again\."),
    "plugin_failed": re.compile(r"(?P<plugin>[\w.-]+) failed at (?P<point>[\w.-]+): (?P<error>.*)", re.DOTALL),
}
"""What versions stored that had no facts: English sentences."""
_NUMBERS = frozenset({"status", "minutes"})


def sentence(row: LabRun) -> str:
    """Why the experiment failed, for a reader; empty if it did not."""
    if not row.problem:
        return ""
    facts = row.problem_facts or _facts_of(row.problem)
    make = SENTENCES.get(facts.get("code", ""))
    try:
        return make(facts) if make else row.problem
    except (KeyError, TypeError, ValueError):  # of another version
        return row.problem


def _facts_of(text: str) -> Values:
    """The facts of a sentence that an earlier version stored; others are quoted."""
    for code, pattern in _EARLIER.items():
        if match := pattern.fullmatch(text):
            values = match.groupdict()
            return {"code": code, **{name: int(one) if name in _NUMBERS else one for name, one in values.items()}}
    return {"code": "refused", "text": text}


def english(problem: LabProblem) -> str:
    """The sentence for programs that read rows."""
    with override("en"):
        return SENTENCES[problem.code](problem.facts)[:MAX_PROBLEM]
