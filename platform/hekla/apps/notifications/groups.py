"""Groups of jobs: one notification for all of them replaces those of the single jobs.

Apps above this one register how to find the group of a job, because this app does not know them.
"""

from collections.abc import Callable, Collection, Mapping
from uuid import UUID

JobGroup = tuple[UUID, str]
"""The uid and the name of the group."""
GroupSource = Callable[[Collection[UUID]], Mapping[UUID, JobGroup]]
_sources: list[GroupSource] = []


def register(source: GroupSource) -> None:
    """Ask this function for the groups of jobs (uids), too."""
    if source not in _sources:
        _sources.append(source)


def groups_of(jobs: Collection[UUID]) -> dict[UUID, JobGroup]:
    """The group of each of these jobs that is in one."""
    return {job: group for source in _sources if jobs for job, group in source(jobs).items()}
