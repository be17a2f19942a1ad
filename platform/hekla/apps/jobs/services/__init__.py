"""What can be done to jobs. Each verb is one unit of work."""

from hekla.apps.jobs.services.commands import command, delete
from hekla.apps.jobs.services.decisions import commit
from hekla.apps.jobs.services.observations import observe
from hekla.apps.jobs.services.submission import check, submit
from hekla.apps.jobs.services.upkeep import delete_expired, mark_cleaned, settle, sync, would_sync

__all__ = [
    "check",
    "command",
    "commit",
    "delete",
    "delete_expired",
    "mark_cleaned",
    "observe",
    "settle",
    "submit",
    "sync",
    "would_sync",
]
