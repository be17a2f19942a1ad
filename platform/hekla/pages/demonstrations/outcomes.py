"""Whether a run ended as its demonstration announces."""

from collections.abc import Sequence

from hekla.apps.demonstrations.scenes import Demonstration, Outcome
from hekla.domain.phases import JobPhase
from hekla.pages.demonstrations.job_views import JobView
from hekla.pages.demonstrations.measures import RunResult


def is_as_announced(
    demonstration: Demonstration, outcome: Outcome, views: Sequence[JobView], found: RunResult | None
) -> bool:
    """Whether all jobs completed, with the announced evictions and the announced value of the measure."""
    return (
        len(views) == len(demonstration.acts)
        and all(view.job.phase == JobPhase.COMPLETED for view in views)
        and [view.evictions for view in views] == list(outcome.evicted or [0] * len(views))
        and {action for view in views for action in view.actions} <= {outcome.action}
        and found is not None
        and found.value == outcome.value
    )
