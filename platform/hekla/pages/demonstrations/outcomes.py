"""Whether a run ended as its demonstration announces."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from hekla.apps.demonstrations.scenes import Announcement, Demonstration, Outcome
from hekla.apps.demonstrations.stages import Stage
from hekla.domain.phases import JobPhase
from hekla.pages.demonstrations.job_views import JobView

Views = Sequence[JobView]


def is_as_announced(demonstration: Demonstration, outcome: Outcome, views: Views) -> bool:
    """Whether all jobs completed, with the evictions and all announcements."""
    return (
        len(views) == len(demonstration.acts)
        and all(view.job.phase == JobPhase.COMPLETED for view in views)
        and [view.evictions for view in views] == list(outcome.evicted or [0] * len(views))
        and {action for view in views for action in view.actions} <= {outcome.action}
        and all(_HOLDS[announcement](demonstration.stage, views) for announcement in outcome.announcements)
    )


def _one_by_one(_stage: Stage, views: Views) -> bool:
    times = [(view.job.started_at, view.job.finished_at) for view in views]
    return all(end is not None and begin is not None and end <= begin for (_, end), (begin, _) in pairwise(times))


def _one_node(_stage: Stage, views: Views) -> bool:
    return all(len(view.nodes) == 1 for view in views)


def _several_nodes(_stage: Stage, views: Views) -> bool:
    return any(len(view.nodes) > 1 for view in views)


def _racks(stage: Stage, view: JobView) -> set[str]:
    return {stage.rack_of(node) for node, _pods in view.nodes}


def _one_rack(stage: Stage, views: Views) -> bool:
    return all(len(_racks(stage, view)) == 1 for view in views)


def _several_racks(stage: Stage, views: Views) -> bool:
    return all(len(_racks(stage, view)) > 1 for view in views)


def _last_waited(_stage: Stage, views: Views) -> bool:
    *others, last = (view.job for view in views)
    ends = [job.finished_at for job in others if job.finished_at is not None]
    return last.started_at is not None and bool(ends) and last.started_at >= min(ends)


def _last_at_once(stage: Stage, views: Views) -> bool:
    return views[-1].job.started_at is not None and not _last_waited(stage, views)


_HOLDS: Mapping[Announcement, Callable[[Stage, Views], bool]] = {
    Announcement.ONE_BY_ONE: _one_by_one,
    Announcement.ONE_NODE: _one_node,
    Announcement.SEVERAL_NODES: _several_nodes,
    Announcement.ONE_RACK: _one_rack,
    Announcement.SEVERAL_RACKS: _several_racks,
    Announcement.LAST_AT_ONCE: _last_at_once,
    Announcement.LAST_WAITED: _last_waited,
}
