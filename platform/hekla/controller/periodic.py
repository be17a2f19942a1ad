"""The periodic tasks, for Celery beat. Workers are normally woken by messages; the safety runs replace lost ones.

One message runs several tasks one after another, because each message costs more than an idle run.
"""

_SLOW = 20.0
"""Seconds between safety runs."""
SAFETY_RUNS = (
    *("hekla.schedules.start_due", "hekla.flows.advance", "hekla.notifications.follow"),
    *("hekla.demonstrations.advance", "hekla.federated_queues.move", "hekla.job_metrics.follow"),
    *("hekla.notifications.send", "hekla.invitations.send"),
)
EACH_MINUTE = (
    *("hekla.impersonation.end_overdue", "hekla.notifications.look", "hekla.schedules.tidy"),
    *("hekla.idleness.watch", "hekla.workbench.follow_pods", "hekla.workbench.look_after_starts"),
    *("hekla.pod_files.look_after", "hekla.job_forks.copy"),
)
BEAT_SCHEDULE = {
    "reconcile clusters": {
        "task": "hekla.controller.tick",
        "schedule": _SLOW,
        "options": {"queue": "control", "expires": 10},
    },
    "replace lost messages": {
        "task": "hekla.run_each",
        "args": [SAFETY_RUNS],
        "schedule": _SLOW,
        "options": {"expires": 10},
    },
    "look after the rest": {
        "task": "hekla.run_each",
        "args": [EACH_MINUTE],
        "schedule": 60.0,
        "options": {"expires": 60},
    },
    "check clusters": {"task": "hekla.health.look_around", "schedule": 30.0, "options": {"expires": 30}},
    "record forecasts": {"task": "hekla.controller.foretell", "schedule": _SLOW, "options": {"expires": 20}},
    "tidy guests": {"task": "hekla.sharing.tidy", "schedule": 300.0, "options": {"expires": 120}},
    "delete old notifications": {"task": "hekla.notifications.tidy", "schedule": 3600.0, "options": {"expires": 600}},
}
