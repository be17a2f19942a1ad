"""The annotations that reading and writing share: what a manifest of any kind cannot say otherwise."""

KIND = "hekla.io/kind"
DESCRIPTION = "hekla.io/description"
PRIORITY = "hekla.io/priority"
PRIORITY_CLASS = "hekla.io/priority-class"
"""For kinds without a field for it."""
ENVIRONMENT = "hekla.io/environment"
DEADLINE = "hekla.io/active-deadline-seconds"
"""For kinds without a field for it."""

PORTS = "hekla.io/ports"
"""On a pod template: the ports of its task by their names, as in `board=6006,metrics=9090`."""

DELETED_WITH_JOB = "hekla.io/deleted-with-job"
"""On a claim that stands beside the job for which it is made."""

QUEUE = "scheduling.volcano.sh/queue-name"
GANG = "scheduling.volcano.sh/group-min-member"
"""Volcano's, for workloads that know neither queue nor gang."""

SCHEDULING = (
    "volcano.sh/preemptable",
    "volcano.sh/cooldown-time",
    "volcano.sh/revocable-zone",
    "volcano.sh/jdb-min-available",
    "volcano.sh/jdb-max-unavailable",
    "volcano.sh/sla-waiting-time",
    "sla-waiting-time",
    "volcano.sh/task-topology-affinity",
    "volcano.sh/task-topology-anti-affinity",
    "volcano.sh/task-topology-task-order",
    "hekla.io/datasets",
)
"""Annotations of a job that plugins of the scheduler read; they go with the job as they are."""

FOLDER = "/workspace"
"""Where files are mounted in a manifest that we write."""
