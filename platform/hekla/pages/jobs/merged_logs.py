"""Merged logs: the pods whose logs are followed together, by task, index, or only failed ones, a page at a time."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from hekla.apps.jobs.models import Pod
from hekla.domain.phases import PodPhase

PAGE = 16
"""Pods per page. Each needs its own connection."""
_RANGE = re.compile(r"(\d{1,6})(?:\s*-\s*(\d{1,6}))?")


class NumbersField(forms.CharField):
    """Pod indexes as people type them (`0-15, 20`); empty for all."""

    def clean(self, value: str | None) -> list[range]:
        """The ranges. Raises ValidationError."""
        parts = [part.strip() for part in (super().clean(value) or "").replace("，", ",").split(",") if part.strip()]
        found = [_RANGE.fullmatch(part) for part in parts]
        if not all(found):
            raise forms.ValidationError(_("Enter numbers and ranges, for example 0-15, 20."))
        return [range(int(match[1]), int(match[2] or match[1]) + 1) for match in found if match]


class LogSelectionForm(forms.Form):
    """The filter of pods."""

    log_task = forms.ChoiceField(label=gettext_lazy("Role"), required=False)
    log_index = NumbersField(label=gettext_lazy("Numbers"), required=False, max_length=200)
    log_failed = forms.BooleanField(label=gettext_lazy("Failed only"), required=False)

    def __init__(self, data: Mapping[str, str], *, tasks: Sequence[str]) -> None:
        super().__init__(data, auto_id="id_%s")
        self.fields["log_task"].choices = [("", gettext_lazy("All roles")), *((task, task) for task in tasks)]  # type: ignore[attr-defined]
        self.fields["log_task"].widget.attrs["aria-label"] = self.fields["log_task"].label
        self.fields["log_index"].widget.attrs["placeholder"] = "0-15, 20"

    def fitting(self, pods: Sequence[Pod]) -> list[Pod]:
        """The pods that match, by task and index; none if the form is invalid."""
        if not self.is_valid():
            return []
        cleaned = self.cleaned_data
        return [
            pod
            for pod in sorted(pods, key=lambda pod: (pod.task, pod.index))
            if cleaned["log_task"] in ("", pod.task)
            and (not cleaned["log_index"] or any(pod.index in numbers for numbers in cleaned["log_index"]))
            and (not cleaned["log_failed"] or pod.phase == PodPhase.FAILED)
        ]


@dataclass(frozen=True, slots=True)
class MergedLogs:
    """A page of the followed pods. `ids`, `names`: those of the pods, separated by commas. `query`: the URL query of
    the page.
    """

    form: LogSelectionForm
    ids: str
    names: str
    first: int
    last: int
    count: int
    query: str
    previous: str
    next: str


def of(current: Sequence[Pod], query: Mapping[str, str]) -> MergedLogs | None:
    """The merged logs; None with fewer than two pods."""
    if len(current) < 2:  # noqa: PLR2004
        return None
    form = LogSelectionForm(query, tasks=sorted({pod.task for pod in current}))
    found = form.fitting(current)
    pages = max(1, -(-len(found) // PAGE))
    page = min(max(1, _whole(query.get("log_page", ""))), pages)
    visible = found[(page - 1) * PAGE : page * PAGE]
    return MergedLogs(
        form=form,
        ids=",".join(str(pod.pk) for pod in visible),
        names=",".join(map(str, visible)),
        first=(page - 1) * PAGE + 1,
        last=(page - 1) * PAGE + len(visible),
        count=len(found),
        query=_query(query, page),
        previous=_query(query, page - 1) if page > 1 else "",
        next=_query(query, page + 1) if page < pages else "",
    )


def _query(query: Mapping[str, str], page: int) -> str:
    filters: dict[str, Any] = {name: query[name] for name in LogSelectionForm.base_fields if query.get(name)}
    return urlencode({"log": "all", **filters, **({"log_page": page} if page > 1 else {})})


def _whole(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 7 else 1  # noqa: PLR2004
