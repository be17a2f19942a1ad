"""The estimates of a job's start in each cluster of a federated queue, in sentences."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from hekla.apps.job_history import labels
from hekla.apps.jobs.models import Job, Placement
from hekla.apps.sentences import together
from hekla.domain.routing import Feasibility


@dataclass(frozen=True, slots=True)
class ClusterProspect:
    """The estimate of one cluster. `state` sets its colour."""

    cluster: str
    queue: str
    state: str
    sentence: str
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a job is in its cluster. `head`: one sentence."""

    placement: Placement
    head: str
    candidates: list[ClusterProspect]


def of_job(job: Job, placement: Placement | None) -> Reason | None:
    """Why the job is in its cluster, or None if it did not name a federated queue."""
    if placement is None:
        return None
    facts = {"cluster": job.cluster.name, "federated": placement.federated_queue or job.spec.get("queue", "")}
    sentence = (
        _("%(federated)s moved the job to %(cluster)s.")
        if placement.moves
        else _("%(federated)s assigned the job to %(cluster)s.")
    )
    return Reason(
        placement, sentence % facts, describe_clusters(placement.candidates, placement.at, chosen=job.cluster.name)
    )


def describe_clusters(candidates: Iterable[Mapping[str, Any]], at: datetime, *, chosen: str) -> list[ClusterProspect]:
    """The estimate of each cluster at that time. `chosen`: the cluster of the job."""
    return [_describe_cluster(one, at, is_chosen=one["cluster"] == chosen) for one in candidates]


def _describe_cluster(one: Mapping[str, Any], at: datetime, *, is_chosen: bool) -> ClusterProspect:
    state = _STATES.get(one["chance"], "stopped")
    return ClusterProspect(one["cluster"], one["queue"], state, sentence(one, at), is_chosen)


def sentence(one: Mapping[str, Any], at: datetime) -> str:
    """A cluster's estimate (`PlacementCandidate.as_data`) in words."""
    chance = one["chance"]
    why = [labels.reason(reason) for reason in one["reasons"]]
    if chance == Feasibility.NOW:
        return together([_("Would start now."), _evicting(one["evicts"])])
    if chance == Feasibility.WAITS:
        return together([_waiting(one, at), *why])
    words = _WORDS.get(chance)
    return together([words() if words else chance, *(why if chance == Feasibility.NEVER else ())])


def _evicting(pods: int) -> str:
    sentence = ngettext("%(n)d pod would be evicted.", "%(n)d pods would be evicted.", pods) % {"n": pods}
    return sentence if pods else ""


def _waiting(one: Mapping[str, Any], at: datetime) -> str:
    if not one["earliest_at"]:
        return _("Would be pending.")
    spans = [labels.duration((datetime.fromisoformat(one[name]) - at).total_seconds()) for name in _TIMES]
    return _("Would be pending for about %(earliest)s to %(latest)s.") % {"earliest": spans[0], "latest": spans[1]}


_TIMES = ("earliest_at", "latest_at")
_STATES = {
    Feasibility.NOW: "done",
    Feasibility.WAITS: "waiting",
    Feasibility.NEVER: "failed",
    Feasibility.AWAY: "failed",
}
_WORDS = {
    Feasibility.UNANSWERED: lambda: _("The cluster did not answer in time."),
    Feasibility.DELEGATED: lambda: _(
        "Volcano schedules this cluster, so its start times are unknown. It is used last."
    ),
    Feasibility.PAUSED: lambda: _("The cluster is paused."),
    Feasibility.AWAY: lambda: _("The cluster is not reachable."),
    Feasibility.NEVER: lambda: _("The job cannot start there now."),
    Feasibility.CLOSED: lambda: _("Its queue accepts no jobs."),
}
