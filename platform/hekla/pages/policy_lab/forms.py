"""The form of an experiment: a period, and the present settings, of which people change some."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.core.files.uploadedfile import UploadedFile
from django.utils.translation import gettext_lazy as _

from hekla.apps.clusters.models import Cluster, Node
from hekla.apps.forms import QuantitiesField, format_amounts
from hekla.apps.policy_lab.models import MAX_TITLE
from hekla.apps.policy_lab.services import MAX_PERIOD, MAX_TRACE_BYTES
from hekla.apps.queues.models import Queue
from hekla.domain.resources import Resources
from hekla.engine.model import QueueSpec
from hekla.engine.policy import MAX_POLICY_BYTES
from hekla.simulation.lab.change import (
    MAX_GOAL_NODES,
    MAX_GOAL_SECONDS,
    MAX_NEW_NODES,
    MAX_REMOVED,
    MAX_WEIGHT,
)

MAX_QUEUES = 40
"""Queues with fields: others keep their settings."""
_MAX_KINDS = 50
_USUAL_MOST = 64
"""More nodes that a goal may take, if people name no number."""
TRACE_FORMATS = [
    ("sacct", _("Slurm: output of sacct -aDP")),
    ("helios", _("Helios: cluster_log.csv")),
    ("philly", _("Philly: cluster_job_log")),
    ("alibaba", _("Alibaba 2023: openb_pod_list")),
]
_WEIGHT, _LIMIT = "weight-", "limit-"


class ExperimentForm(forms.Form):
    """An experiment with the workload of a cluster. Fields that people leave alone change nothing."""

    title = forms.CharField(
        label=_("Title"), required=False, max_length=MAX_TITLE, help_text=_("What you want to find out.")
    )
    days = forms.IntegerField(
        label=_("Days"), initial=7, min_value=1, max_value=MAX_PERIOD.days, help_text=_("Length of the period.")
    )
    ends_at = forms.DateTimeField(
        label=_("End of the period"),
        required=False,
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}),
        help_text=_("Leave empty for now."),
    )
    like = forms.ChoiceField(label=_("More nodes like"), required=False)
    count = forms.IntegerField(label=_("How many more"), required=False, min_value=0, max_value=MAX_NEW_NODES)
    wait_minutes = forms.IntegerField(
        label=_("Wait of 90 % of the jobs, at most (minutes)"),
        required=False,
        min_value=0,
        max_value=MAX_GOAL_SECONDS // 60,
        help_text=_("If you fill this in, a few runs find how many more nodes that takes, up to the number above."),
    )
    removed = forms.CharField(
        label=_("Without these nodes"), required=False, max_length=20_000, help_text=_("Names, separated by commas.")
    )
    policy = forms.CharField(
        label=_("Scheduling policy"),
        max_length=MAX_POLICY_BYTES,
        widget=forms.Textarea(attrs={"rows": 14, "class": "code-input", "spellcheck": "false"}),
    )

    def __init__(
        self,
        data: Any,  # noqa: ANN401
        *,
        policy: str,
        queues: Sequence[Queue | QueueSpec],
        nodes: Iterable[Node],
        has_period: bool = True,
    ) -> None:
        """`has_period`: whether people choose the period; a trace has its own."""
        super().__init__(data, initial={"policy": policy})
        if not has_period:
            del self.fields["days"], self.fields["ends_at"]
        self._queues, self._policy = queues[:MAX_QUEUES], policy
        self.listed_queues, self.more_queues = len(self._queues), len(queues) > MAX_QUEUES
        self.fields["like"].choices = [("", _("no more nodes")), *_kinds(nodes)]  # type: ignore[attr-defined]
        for queue in self._queues:
            self.fields[f"{_WEIGHT}{queue.name}"] = forms.IntegerField(
                label=_("Weight of %s") % queue.name, initial=queue.weight, min_value=1, max_value=MAX_WEIGHT
            )
            self.fields[f"{_LIMIT}{queue.name}"] = QuantitiesField(
                label=_("Limit of %s") % queue.name, initial=queue.capability
            )

    def clean(self) -> dict[str, Any]:
        """Names of nodes as a list; more nodes need a kind."""
        cleaned = super().clean() or {}
        has_goal = cleaned.get("wait_minutes") is not None
        if (cleaned.get("count") or has_goal) and not cleaned.get("like"):
            self.add_error("like", _("Choose which nodes."))
        if has_goal and (cleaned.get("count") or 0) > MAX_GOAL_NODES:
            self.add_error("count", _("At most %d nodes can be searched for.") % MAX_GOAL_NODES)
        names = [name.strip() for name in cleaned.get("removed", "").split(",")]
        cleaned["removed"] = [name for name in names if name]
        if len(cleaned["removed"]) > MAX_REMOVED:
            self.add_error("removed", _("Too many names."))
        return cleaned

    def period(self, now: datetime) -> tuple[datetime, datetime]:
        """The begin and end of the period; of a trace it means nothing."""
        end: datetime = self.cleaned_data.get("ends_at") or now
        return end - timedelta(days=self.cleaned_data.get("days") or 1), end

    def change(self) -> dict[str, Any]:
        """What differs from the present settings, as `simulation.lab.change` reads it."""
        cleaned, found = self.cleaned_data, dict[str, Any]()
        if cleaned["policy"].split() != self._policy.split():
            found["policy"] = cleaned["policy"]
        queues = {queue.name: change for queue in self._queues if (change := self._queue(queue))}
        if queues:
            found["queues"] = queues
        if (minutes := cleaned["wait_minutes"]) is not None:
            most = cleaned["count"] or _USUAL_MOST
            found["goal"] = {"like": cleaned["like"], "most": most, "wait_p90": 60 * minutes}
        elif cleaned["count"]:
            found["nodes"] = [{"like": cleaned["like"], "count": cleaned["count"]}]
        return found | ({"remove_nodes": cleaned["removed"]} if cleaned["removed"] else {})

    def _queue(self, queue: Queue | QueueSpec) -> Mapping[str, Any]:
        weight, limit = (self.cleaned_data[f"{part}{queue.name}"] for part in (_WEIGHT, _LIMIT))
        found: dict[str, Any] = {"weight": weight} if weight != queue.weight else {}
        if limit != (queue.capability or {}):
            found["capability"] = limit or None
        return found

    @property
    def of_period(self) -> list[forms.BoundField]:
        """The fields of the period."""
        return [self[name] for name in ("title", "days", "ends_at") if name in self.fields]

    @property
    def of_nodes(self) -> list[forms.BoundField]:
        """The fields of the nodes."""
        return [self[name] for name in ("like", "count", "wait_minutes", "removed")]

    @property
    def of_queues(self) -> list[forms.BoundField]:
        """The fields of the queues."""
        return [self[name] for name in self.fields if name.startswith((_WEIGHT, _LIMIT))]


class TraceForm(forms.Form):
    """An upload of a trace."""

    name = forms.CharField(label=_("Name"), max_length=MAX_TITLE)
    format = forms.ChoiceField(label=_("Format"), choices=TRACE_FORMATS)
    file = forms.FileField(label=_("File"), help_text=_("Plain or packed with gzip. At most 16 MiB of text."))

    def clean_file(self) -> UploadedFile:
        """Refuses a file that is too large before it is read."""
        file: UploadedFile = self.cleaned_data["file"]
        if (file.size or 0) > MAX_TRACE_BYTES:
            raise forms.ValidationError(_("The file has more than %d MiB.") % (MAX_TRACE_BYTES // 2**20))
        return file

    def content(self) -> bytes:
        """The bytes of the file."""
        found: bytes = self.cleaned_data["file"].read()
        return found


def _kinds(nodes: Iterable[Node]) -> list[tuple[str, str]]:
    """The different sizes of nodes, each by its first node."""
    found: dict[tuple[str, str], list[str]] = {}
    for node in nodes:
        size = {
            name: amount for name, amount in Resources.parse(node.allocatable).quantities().items() if name != "pods"
        }
        found.setdefault((format_amounts(size), " ".join(node.labelled_models)), []).append(node.name)
    kinds = sorted(found.items(), key=lambda one: -len(one[1]))[:_MAX_KINDS]
    return [(names[0], _label(names, size, models)) for (size, models), names in kinds]


def _label(names: Sequence[str], size: str, models: str) -> str:
    parts = ", ".join(part for part in (size, models) if part)
    return f"{names[0]} (+{len(names) - 1}): {parts}" if len(names) > 1 else f"{names[0]}: {parts}"


def chosen_cluster(every: Sequence[Cluster], name: str | None) -> Cluster | None:
    """The cluster of this name, else the first; None if there is none."""
    return next((one for one in every if one.name == name), every[0] if every else None)
