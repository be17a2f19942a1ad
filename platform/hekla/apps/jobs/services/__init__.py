"""Changes to jobs. Each change is one unit of work."""

from hekla.apps.jobs.services.blocked_evictions import block_evictions
from hekla.apps.jobs.services.bulk import BULK_ACTIONS, MOST_AT_ONCE, BulkOutcome, act_on_all, require_priority
from hekla.apps.jobs.services.commands import command, end, require_right
from hekla.apps.jobs.services.debugging import keep_frozen, last_moment, open_frozen, release_frozen
from hekla.apps.jobs.services.decisions import commit
from hekla.apps.jobs.services.delaying import delay
from hekla.apps.jobs.services.delegated_jobs import follow
from hekla.apps.jobs.services.draining import DrainedPods, DrainPreviewOutdated, drain, evict_late
from hekla.apps.jobs.services.faults import record_fault
from hekla.apps.jobs.services.freezing import mark_frozen_cleaned, note_size, release_due
from hekla.apps.jobs.services.lists import arrange, delete_view, save_view
from hekla.apps.jobs.services.many import submit_many, try_out_many
from hekla.apps.jobs.services.moving import move
from hekla.apps.jobs.services.observations import end_unstarted, note_preparation, observe, sync, would_sync
from hekla.apps.jobs.services.priority import fixed_since, has_priority, set_priority
from hekla.apps.jobs.services.reminding import may_remind, remind_owner, require_reminder_right
from hekla.apps.jobs.services.removal import (
    delete,
    delete_expired,
    delete_finished,
    end_pods,
    mark_cleaned,
)
from hekla.apps.jobs.services.retention import mark_logs_purged, purge_history
from hekla.apps.jobs.services.routing import Route
from hekla.apps.jobs.services.scaling import ScalingStep, autoscale, is_scalable, scale
from hekla.apps.jobs.services.scaling import remarks as scaling_remarks
from hekla.apps.jobs.services.submission import (
    check,
    find_problems,
    require_submission_right,
    route_for,
    submit,
    try_out,
)
from hekla.apps.jobs.services.terminals import (
    no_terminal,
    record_ssh,
    record_ssh_end,
    record_terminal,
    record_terminal_end,
    require_terminal,
)
from hekla.apps.jobs.services.uploads import (
    StaleUpload,
    append_to_upload,
    begin_upload,
    drop_expired_uploads,
    drop_upload,
    fence_upload,
    finish_upload,
)

__all__ = [
    "BULK_ACTIONS",
    "MOST_AT_ONCE",
    "BulkOutcome",
    "DrainPreviewOutdated",
    "DrainedPods",
    "Route",
    "ScalingStep",
    "StaleUpload",
    "act_on_all",
    "append_to_upload",
    "arrange",
    "autoscale",
    "begin_upload",
    "block_evictions",
    "check",
    "command",
    "commit",
    "delay",
    "delete",
    "delete_expired",
    "delete_finished",
    "delete_view",
    "drain",
    "drop_expired_uploads",
    "drop_upload",
    "end",
    "end_pods",
    "end_unstarted",
    "evict_late",
    "fence_upload",
    "find_problems",
    "finish_upload",
    "fixed_since",
    "follow",
    "has_priority",
    "is_scalable",
    "keep_frozen",
    "last_moment",
    "mark_cleaned",
    "mark_frozen_cleaned",
    "mark_logs_purged",
    "may_remind",
    "move",
    "no_terminal",
    "note_preparation",
    "note_size",
    "observe",
    "open_frozen",
    "purge_history",
    "record_fault",
    "record_ssh",
    "record_ssh_end",
    "record_terminal",
    "record_terminal_end",
    "release_due",
    "release_frozen",
    "remind_owner",
    "require_priority",
    "require_reminder_right",
    "require_right",
    "require_submission_right",
    "require_terminal",
    "route_for",
    "save_view",
    "scale",
    "scaling_remarks",
    "set_priority",
    "submit",
    "submit_many",
    "sync",
    "try_out",
    "try_out_many",
    "would_sync",
]
