"""Facts about GPUs (who held them, which existed), and the sums of GPU time and costs that are derived from them.

No row refers to jobs, nodes or people by a foreign key: measures outlive what they measure. GPU time is in microseconds
of a whole GPU, and amounts of GPUs in thousandths (see `domain.gpu_time`). Levels of sums are in minutes: 1, 60, 1440.
"""

from django.db import models


class GpuHolding(models.Model):
    """A pod attempt that holds or held GPUs of one resource on a node, from `bound_at` until `finished_at`.

    `cpu`: the cores that it requests too, in thousandths, and `memory`, in MiB; of several resources only the first one
    has them. A pod without GPUs has one row, without a resource. `ready_at`: since when it and its gang run; null: not
    yet. `outcome`: why its work was lost (a `GpuClass`). A migration adds an index on the time between `bound_at` and
    `finished_at`.
    """

    pk = models.CompositePrimaryKey("pod_id", "resource")
    pod_id = models.BigIntegerField()
    resource = models.CharField(max_length=317)
    cluster_id = models.BigIntegerField()
    job_id = models.BigIntegerField(db_index=True)
    queue_id = models.BigIntegerField()
    tenant_id = models.BigIntegerField()
    owner_id = models.BigIntegerField()
    kind = models.CharField(max_length=32)
    node = models.CharField(max_length=253)
    gpus = models.BigIntegerField()
    cpu = models.BigIntegerField(default=0, db_default=0)
    memory = models.BigIntegerField(default=0, db_default=0)
    bound_at = models.DateTimeField()
    ready_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    outcome = models.CharField(max_length=12, blank=True)

    class Meta:
        indexes = [
            models.Index(
                fields=["cluster_id", "bound_at"], condition=models.Q(finished_at=None), name="gpu_holding_open"
            ),
            models.Index(fields=["bound_at", "pod_id"], name="gpu_holding_by_begin"),
            models.Index(fields=["finished_at"], name="gpu_holding_by_end"),
        ]

    def __str__(self) -> str:
        return f"pod {self.pod_id}: {self.gpus / 1000:g} {self.resource}"


class GpuCapacity(models.Model):
    """The GPUs of one resource of a node, from `begin_at` until `end_at`; null: until now. `state`: a `NodeState`."""

    cluster_id = models.BigIntegerField()
    node = models.CharField(max_length=253)
    resource = models.CharField(max_length=253)
    model = models.CharField(max_length=253)
    gpus = models.BigIntegerField()
    state = models.CharField(max_length=8)
    begin_at = models.DateTimeField()
    end_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["cluster_id", "node", "resource"],
                condition=models.Q(end_at=None),
                name="one_present_capacity",
            )
        ]
        indexes = [models.Index(fields=["cluster_id", "end_at"], name="gpu_capacity_by_end")]

    def __str__(self) -> str:
        return f"{self.node}: {self.gpus / 1000:g} {self.model}, {self.state}"


class _GpuTime(models.Model):
    """GPU time that pods held in the `level` minutes from `at` on."""

    level = models.SmallIntegerField()
    at = models.DateTimeField()
    cluster_id = models.BigIntegerField()
    model = models.CharField(max_length=253)
    useful = models.BigIntegerField(default=0)
    idle = models.BigIntegerField(default=0)
    unmeasured = models.BigIntegerField(default=0)
    gang = models.BigIntegerField(default=0)
    preempted = models.BigIntegerField(default=0)
    retried = models.BigIntegerField(default=0)
    failed = models.BigIntegerField(default=0)

    class Meta:
        abstract = True


class NodeGpuTime(_GpuTime):
    """The GPU time of one model on a node. All classes together are its capacity.

    `beyond`: time that pods held although the node had no such GPUs, as far as is known. It is in no class.
    """

    pk = models.CompositePrimaryKey("level", "cluster_id", "at", "node", "model")
    node = models.CharField(max_length=253)
    free = models.BigIntegerField(default=0)
    drained = models.BigIntegerField(default=0)
    down = models.BigIntegerField(default=0)
    beyond = models.BigIntegerField(default=0)

    class Meta:
        indexes = [models.Index(fields=["level", "at"], name="node_gpu_time_by_age")]

    def __str__(self) -> str:
        return f"{self.node} at {self.at:%F %T}"


class HolderGpuTime(_GpuTime):
    """The GPU time of one model that the jobs of a kind, of a person, in a tenant and a queue, held."""

    pk = models.CompositePrimaryKey("level", "cluster_id", "at", "queue_id", "tenant_id", "owner_id", "kind", "model")
    queue_id = models.BigIntegerField()
    tenant_id = models.BigIntegerField()
    owner_id = models.BigIntegerField()
    kind = models.CharField(max_length=32)

    class Meta:
        indexes = [
            models.Index(fields=["level", "at"], name="holder_gpu_time_by_age"),
            models.Index(fields=["tenant_id", "level", "at"], name="holder_gpu_time_of_tenant"),
        ]

    def __str__(self) -> str:
        return f"tenant {self.tenant_id}, person {self.owner_id} at {self.at:%F %T}"


class ClusterGpuTime(_GpuTime):
    """The sums of a cluster's nodes (`NodeGpuTime`), so that reports of all nodes read few rows."""

    pk = models.CompositePrimaryKey("level", "cluster_id", "at", "model")
    free = models.BigIntegerField(default=0)
    drained = models.BigIntegerField(default=0)
    down = models.BigIntegerField(default=0)
    beyond = models.BigIntegerField(default=0)

    class Meta:
        indexes = [models.Index(fields=["level", "at"], name="cluster_gpu_time_by_age")]

    def __str__(self) -> str:
        return f"cluster {self.cluster_id} at {self.at:%F %T}"


class PartGpuTime(_GpuTime):
    """The sums of holders (`HolderGpuTime`) of hours and days, each by one of their facts alone.

    `by`: which one (a key of `levels.PARTS`). `key`: its value as text.
    """

    pk = models.CompositePrimaryKey("level", "cluster_id", "by", "at", "key", "model")
    by = models.CharField(max_length=8)
    key = models.CharField(max_length=32)

    class Meta:
        indexes = [models.Index(fields=["level", "at"], name="part_gpu_time_by_age")]

    def __str__(self) -> str:
        return f"{self.by} {self.key} at {self.at:%F %T}"


class _Cost(models.Model):
    """What held resources cost in the `level` minutes (an hour, a day) from `at` on: in millionths of the currency.

    `resource`: a `PricedResource`. `model`: of GPUs. `held`: the amount, in the units of `domain.prices.HOUR_OF`. The
    rest is its cost by class; of CPU and memory the use is not measured.
    """

    level = models.SmallIntegerField()
    at = models.DateTimeField()
    cluster_id = models.BigIntegerField()
    resource = models.CharField(max_length=8)
    model = models.CharField(max_length=253)
    held = models.BigIntegerField(default=0)
    useful = models.BigIntegerField(default=0)
    idle = models.BigIntegerField(default=0)
    unmeasured = models.BigIntegerField(default=0)
    gang = models.BigIntegerField(default=0)
    preempted = models.BigIntegerField(default=0)
    retried = models.BigIntegerField(default=0)
    failed = models.BigIntegerField(default=0)

    class Meta:
        abstract = True


class HolderCost(_Cost):
    """The cost of what the jobs of a kind, of a person, in a tenant and a queue, held."""

    pk = models.CompositePrimaryKey(
        *("level", "cluster_id", "at", "queue_id", "tenant_id", "owner_id", "kind", "resource", "model")
    )
    queue_id = models.BigIntegerField()
    tenant_id = models.BigIntegerField()
    owner_id = models.BigIntegerField()
    kind = models.CharField(max_length=32)

    class Meta:
        indexes = [
            models.Index(fields=["level", "at"], name="holder_cost_by_age"),
            models.Index(fields=["tenant_id", "level", "at"], name="holder_cost_of_tenant"),
        ]

    def __str__(self) -> str:
        return f"{self.resource} of tenant {self.tenant_id}, person {self.owner_id} at {self.at:%F %T}"


class PartCost(_Cost):
    """The sums of `HolderCost` by one fact alone (`by`: a key of `levels.PARTS`), or of a cluster (`by`: "all")."""

    pk = models.CompositePrimaryKey("level", "cluster_id", "by", "at", "key", "resource", "model")
    by = models.CharField(max_length=8)
    key = models.CharField(max_length=32, blank=True)

    class Meta:
        indexes = [models.Index(fields=["level", "at"], name="part_cost_by_age")]

    def __str__(self) -> str:
        return f"{self.resource} of {self.by} {self.key} at {self.at:%F %T}"


class _Stale(models.Model):
    pk = models.CompositePrimaryKey("cluster_id", "at")
    cluster_id = models.BigIntegerField()
    at = models.DateTimeField()
    since = models.DateTimeField()

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"cluster {self.cluster_id} at {self.at:%F %T}"


class StaleHour(_Stale):
    """An hour of a cluster whose sums no longer agree with the facts."""

    class Meta:
        indexes = [models.Index(fields=["since"], name="stale_hour_by_age")]


class MeasuredCluster(models.Model):
    """A measured cluster. Its sums reach until `until`; null: none yet. `has_gpus`: whether it ever had some."""

    cluster_id = models.BigIntegerField(primary_key=True)
    until = models.DateTimeField(null=True)
    has_gpus = models.BooleanField(default=True, db_default=True)

    def __str__(self) -> str:
        return f"cluster {self.cluster_id} until {self.until}"


class MeasuresCursor(models.Model):
    """The one row that says up to which event the log was read: `last`. Who writes measures locks it."""

    last = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return f"until event {self.last}"


class _OfJobs(models.Model):
    """What is counted of jobs, by whom and where. `what`: a `MomentKind`. `size`: a `JobSize`.

    `part`: of failures a `FailureCause`, of starts the bucket of the wait, of waits a `WaitReason`; else empty.
    `model`: of the GPUs that the job held first; empty before, or without GPUs.
    """

    cluster_id = models.BigIntegerField()
    queue_id = models.BigIntegerField()
    tenant_id = models.BigIntegerField()
    owner_id = models.BigIntegerField()
    kind = models.CharField(max_length=32)
    size = models.CharField(max_length=8)
    model = models.CharField(max_length=253)
    what = models.CharField(max_length=12)
    part = models.CharField(max_length=12)

    class Meta:
        abstract = True


class JobMoment(_OfJobs):
    """Something that happened to a job at the time `at`. `number`: counts what can happen again.

    `milliseconds`: of starts, waits and ends without a start how long the job waited, else 0. Of failures: `node` and
    `image` of the pod that failed, and its `exit_code`.
    """

    pk = models.CompositePrimaryKey("job_id", "what", "number")
    job_id = models.BigIntegerField()
    number = models.IntegerField()
    at = models.DateTimeField()
    milliseconds = models.BigIntegerField(default=0)
    node = models.CharField(max_length=253, blank=True)
    image = models.CharField(max_length=512, blank=True)
    exit_code = models.IntegerField(null=True)

    class Meta:
        indexes = [
            models.Index(fields=["cluster_id", "at"], name="job_moment_by_time"),
            models.Index(fields=["what", "at"], name="job_moment_by_kind"),
            models.Index(fields=["at"], name="job_moment_by_age"),
            models.Index(
                fields=["what", "milliseconds"], condition=models.Q(milliseconds__gt=0), name="job_moment_by_wait"
            ),
            models.Index(fields=["tenant_id", "what", "at"], name="job_moment_of_tenant"),
            models.Index(fields=["queue_id", "at"], condition=models.Q(what="failed"), name="job_moment_of_queue"),
        ]

    def __str__(self) -> str:
        return f"job {self.job_id} {self.what} at {self.at:%F %T}"


class JobSum(_OfJobs):
    """How many moments of jobs there were in the `level` minutes from `at` on, and the sum of their waits."""

    pk = models.CompositePrimaryKey(
        *("level", "cluster_id", "at", "queue_id", "tenant_id", "owner_id", "kind", "size", "model", "what", "part")
    )
    level = models.SmallIntegerField()
    at = models.DateTimeField()
    count = models.BigIntegerField()
    milliseconds = models.BigIntegerField()

    class Meta:
        indexes = [
            models.Index(fields=["level", "at"], name="job_sum_by_age"),
            models.Index(fields=["tenant_id", "level", "at"], name="job_sum_of_tenant"),
            models.Index(fields=["queue_id", "level", "at"], name="job_sum_of_queue"),
            models.Index(fields=["owner_id", "level", "at"], name="job_sum_of_owner"),
        ]

    def __str__(self) -> str:
        return f"{self.count} {self.what} at {self.at:%F %T}"


class PartJobSum(models.Model):
    """The sums of `JobSum`, each by one fact of the jobs alone, so that reports of long times read few rows.

    `by`: which fact (see `job_sums`); `all`: of all jobs. `key`: its value as text. Some facts have only days.
    """

    pk = models.CompositePrimaryKey("level", "cluster_id", "by", "key", "at", "what", "part")
    level = models.SmallIntegerField()
    cluster_id = models.BigIntegerField()
    by = models.CharField(max_length=12)
    key = models.CharField(max_length=512)
    at = models.DateTimeField()
    what = models.CharField(max_length=12)
    part = models.CharField(max_length=12)
    count = models.BigIntegerField()
    milliseconds = models.BigIntegerField()

    class Meta:
        indexes = [
            models.Index(fields=["level", "at"], name="part_job_sum_by_age"),
            models.Index(
                fields=["level", "by", "what", "at"],
                include=["cluster_id", "key", "count"],
                name="part_job_sum_by_kind",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.count} {self.what} of {self.by} {self.key} at {self.at:%F %T}"


class StaleJobHour(_Stale):
    """An hour of a cluster whose sums of jobs no longer agree with the moments, from `since` on.

    An hour that goes on is written, and stays marked until it is over.
    """

    class Meta:
        indexes = [models.Index(fields=["since"], name="stale_job_hour_by_age")]


class JobsCursor(models.Model):
    """The one row that says up to which event jobs were counted: `last`, and at what time: `at`.

    Who counts jobs locks it.
    """

    last = models.BigIntegerField(default=0)
    at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"until event {self.last}"


class _QueueAmounts(models.Model):
    """Amounts of one resource of a queue, in thousandths of a GPU; over time in microseconds of a whole GPU.

    `waiting`: what its waiting jobs lack. `borrowed`: allocated beyond what it deserves. `lent`: deserved, not
    allocated, and borrowed by others. `is_inner`: the amounts contain those of its child queues.
    """

    cluster_id = models.BigIntegerField()
    queue_id = models.BigIntegerField()
    resource = models.CharField(max_length=253)
    is_inner = models.BooleanField(default=False)
    deserved = models.BigIntegerField(default=0)
    allocated = models.BigIntegerField(default=0)
    waiting = models.BigIntegerField(default=0)
    borrowed = models.BigIntegerField(default=0)
    lent = models.BigIntegerField(default=0)

    class Meta:
        abstract = True


class QueueShareSpan(_QueueAmounts):
    """The amounts of a queue from `begin_at` until `end_at`; null: until now. Without a row, all are 0."""

    begin_at = models.DateTimeField()
    end_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["cluster_id", "queue_id", "resource"],
                condition=models.Q(end_at=None),
                name="one_present_queue_share",
            )
        ]
        indexes = [models.Index(fields=["cluster_id", "end_at"], name="queue_share_by_end")]

    def __str__(self) -> str:
        return f"queue {self.queue_id}: {self.allocated / 1000:g} of {self.deserved / 1000:g} {self.resource}"


class QueueShareTime(_QueueAmounts):
    """The amounts in the `level` minutes (an hour, a day) from `at` on, over time."""

    pk = models.CompositePrimaryKey("level", "cluster_id", "at", "queue_id", "resource")
    level = models.SmallIntegerField()
    at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["level", "at"], name="queue_share_time_by_age")]

    def __str__(self) -> str:
        return f"queue {self.queue_id} at {self.at:%F %T}"


class _Starved(models.Model):
    """How long, and between which times, a queue waited below what it deserves while another one was above."""

    pk = models.CompositePrimaryKey("cluster_id", "at", "resource", "queue_id", "other_id")
    cluster_id = models.BigIntegerField()
    at = models.DateTimeField()
    resource = models.CharField(max_length=253)
    queue_id = models.BigIntegerField()
    other_id = models.BigIntegerField()
    milliseconds = models.BigIntegerField()
    first_at = models.DateTimeField()
    last_at = models.DateTimeField()

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"queue {self.queue_id} below, queue {self.other_id} above at {self.at:%F %T}"


class StarvedQueueTime(_Starved):
    """In the hour from `at` on."""

    class Meta:
        indexes = [models.Index(fields=["at"], name="starved_queue_by_age")]


class StarvedQueueDay(_Starved):
    """In the UTC day from `at` on, added up from its hours, so that reports of months read few rows."""

    class Meta:
        indexes = [models.Index(fields=["at"], name="starved_queue_day_by_age")]


class MeasuredQueues(models.Model):
    """A cluster whose queues are measured. `looked_at`: when the scheduler last reported the amounts.

    `until`: up to which hour there are sums. `due_at`: when the next hour can be added.
    """

    cluster_id = models.BigIntegerField(primary_key=True)
    looked_at = models.DateTimeField()
    until = models.DateTimeField()
    due_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return f"cluster {self.cluster_id} until {self.until}"
