"""What can be done to jobs. Each verb is one unit of work."""

from hekla.apps.jobs.services.commands import command, require_right
from hekla.apps.jobs.services.decisions import commit
from hekla.apps.jobs.services.many import check_many, submit_many
from hekla.apps.jobs.services.observations import observe
from hekla.apps.jobs.services.removal import (
    delete,
    delete_expired,
    delete_finished,
    end_pods,
    mark_cleaned,
)
from hekla.apps.jobs.services.retention import mark_logs_purged, purge_history
from hekla.apps.jobs.services.scaling import is_scalable, scale
from hekla.apps.jobs.services.scaling import remarks as scaling_remarks
from hekla.apps.jobs.services.submission import check, submit
from hekla.apps.jobs.services.upkeep import end, settle, sync, would_sync

__all__ = [
    "check",
    "check_many",
    "command",
    "commit",
    "delete",
    "delete_expired",
    "delete_finished",
    "end",
    "end_pods",
    "is_scalable",
    "mark_cleaned",
    "mark_logs_purged",
    "observe",
    "purge_history",
    "require_right",
    "scale",
    "scaling_remarks",
    "settle",
    "submit",
    "submit_many",
    "sync",
    "would_sync",
]
