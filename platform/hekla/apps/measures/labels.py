"""Classes of GPU time in words."""

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from hekla.apps.measures.selectors import GroupBy, Period
from hekla.domain.gpu_time import GPU_HOUR, GpuClass

CLASSES: dict[GpuClass, str | Promise] = {
    GpuClass.USEFUL: _("Useful"),
    GpuClass.IDLE: _("Idle in a job"),
    GpuClass.UNMEASURED: _("Not measured"),
    GpuClass.GANG: _("Waiting for the gang"),
    GpuClass.PREEMPTED: _("Lost to preemption"),
    GpuClass.RETRIED: _("Repeated"),
    GpuClass.FAILED: _("Failed"),
    GpuClass.FREE: _("Free"),
    GpuClass.DRAINED: _("Cordoned"),
    GpuClass.DOWN: _("Node down"),
}
MEANINGS: dict[GpuClass, str | Promise] = {
    GpuClass.USEFUL: _("A pod held the GPUs and kept at least 5 per cent of them busy in that minute."),
    GpuClass.IDLE: _("A pod held the GPUs and kept less than 5 per cent of them busy in that minute."),
    GpuClass.UNMEASURED: _("A pod held the GPUs. The cluster did not measure their use in that minute."),
    GpuClass.GANG: _("A pod held the GPUs before enough pods of its job had started."),
    GpuClass.PREEMPTED: _("The pod was evicted, or a pod of its gang, and the job started over."),
    GpuClass.RETRIED: _("The job or the pod started over, so this work was repeated."),
    GpuClass.FAILED: _("The pod or its job failed."),
    GpuClass.FREE: _("No pod held the GPUs, and pods could start on the node."),
    GpuClass.DRAINED: _("No pod held the GPUs. The node was cordoned."),
    GpuClass.DOWN: _("No pod held the GPUs. The node was not ready."),
}
COLOURS: dict[GpuClass, str] = {
    GpuClass.USEFUL: "#0072b2",
    GpuClass.IDLE: "#e69f00",
    GpuClass.UNMEASURED: "#56b4e9",
    GpuClass.GANG: "#f0e442",
    GpuClass.PREEMPTED: "#009e73",
    GpuClass.RETRIED: "#8b4513",
    GpuClass.FAILED: "#d55e00",
    GpuClass.FREE: "#c3c7cd",
    GpuClass.DRAINED: "#8a8f99",
    GpuClass.DOWN: "#4a4f57",
}
"""In figures: Okabe's and Ito's colours and a brown, and greys for what nobody held. Any two of them can be told apart
without one kind of cones (a test simulates it).
"""
PERIODS: dict[Period, str | Promise] = {
    Period.HOUR: _("Hour"),
    Period.DAY: _("Day"),
    Period.WEEK: _("Week"),
    Period.MONTH: _("30 days"),
    Period.QUARTER: _("90 days"),
}
PARTS: dict[GroupBy, str | Promise] = {
    GroupBy.TENANT: _("Tenant"),
    GroupBy.QUEUE: _("Queue"),
    GroupBy.CLUSTER: _("Cluster"),
    GroupBy.PERSON: _("Person"),
    GroupBy.KIND: _("Kind"),
    GroupBy.MODEL: _("Model"),
}


def hours(gpu_us: int) -> str:
    """GPU time in GPU hours."""
    return f"{gpu_us / GPU_HOUR:,.1f}"


def part(gpu_us: int, whole: int) -> str:
    """A part of a whole in per cent; empty without a whole."""
    return f"{100 * gpu_us / whole:.1f} %" if whole else ""
