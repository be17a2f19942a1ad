"""The annotations that readers and writers share, for facts that manifests have no field for."""

KIND = "hekla.io/kind"
DESCRIPTION = "hekla.io/description"
PRIORITY = "hekla.io/priority"
PRIORITY_CLASS = "hekla.io/priority-class"
"""For kinds without a field for it."""
ENVIRONMENT = "hekla.io/environment"
DEADLINE = "hekla.io/active-deadline-seconds"
"""For kinds without a field for it."""

KEEP_FAILED = "hekla.io/keep-failed-seconds"
IDLE_AFTER, IDLE_GRACE = "hekla.io/idle-after-seconds", "hekla.io/idle-grace-seconds"
"""How long the files of failed pods are kept."""

MIN_RESOURCES = "hekla.io/min-resources"
"""What must be free before the job is admitted, for kinds without a field for it: `cpu=4,memory=8Gi`."""

PORTS = "hekla.io/ports"
"""On a pod template: the ports of its task by name, for example `board=6006,metrics=9090`."""

SUCCESS_POLICY = "hekla.io/success-policy"
"""On a pod template: `FirstReplica` if its task completes with its first replica."""

AUTOSCALING = "hekla.io/autoscaling"
"""On a pod template: how its task is scaled, for example `max-replicas=4,gpu-utilization=70`."""

DELETED_WITH_JOB = "hekla.io/deleted-with-job"
"""On a claim in the stream that is created for the job."""

QUEUE = "scheduling.volcano.sh/queue-name"
GANG = "scheduling.volcano.sh/group-min-member"
"""Volcano's annotations for workloads without a field for queue or gang."""

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
    "volcano.sh/card.name",
    "hekla.io/datasets",
)
"""Annotations of a job that plugins of the scheduler read; they are kept unchanged."""

FOLDER = "/workspace"
"""The mount path of files in manifests that we write."""
