"""The periodic tasks, for Celery beat. Workers are normally woken by messages; the safety runs replace lost ones.

One message runs several tasks one after another, because each message costs more than an idle run. Those without work
do not run at all: one query finds out which have some (`apps/due_work.py`).
"""

_SLOW = 20.0
"""Seconds between safety runs: a lost message costs no more."""
SAFETY_RUNS = (
    *("hekla.schedules.start_due", "hekla.flows.advance", "hekla.notifications.follow"),
    *("hekla.demonstrations.advance", "hekla.federated_queues.move", "hekla.job_metrics.follow"),
    *("hekla.notifications.send", "hekla.invitations.send", "hekla.forecasts.request"),
    *("hekla.alerts.evaluate", "hekla.alerts.act"),
)
EACH_MINUTE = (
    *("hekla.impersonation.end_overdue", "hekla.notifications.look", "hekla.schedules.tidy"),
    *("hekla.idleness.watch", "hekla.workbench.follow_pods", "hekla.workbench.look_after_starts"),
    *("hekla.pod_files.look_after", "hekla.job_forks.copy", "hekla.measures.roll_up", "hekla.policy_lab.request"),
    *("hekla.measures.count_jobs", "hekla.alerts.tidy", "hekla.reports.send_due"),
)
BEAT_SCHEDULE = {
    "reconcile clusters": {
        "task": "hekla.controller.tick",
        "schedule": 60.0,  # the threads that watch clusters notice sooner
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
    "tidy guests": {"task": "hekla.sharing.tidy", "schedule": 300.0, "options": {"expires": 120}},
    "delete old notifications": {"task": "hekla.notifications.tidy", "schedule": 3600.0, "options": {"expires": 600}},
}
