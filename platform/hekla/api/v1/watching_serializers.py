"""Serializers of the pending reasons and evictions of a job, and of its risk of reclaim."""

from typing import Any

from rest_framework import serializers

from hekla.apps.job_history.receipts import Receipt
from hekla.apps.job_history.ribbon import Cell


class CellSerializer(serializers.Serializer[Cell]):
    """A period with one pending reason. Equal neighbours are merged."""

    begin = serializers.DateTimeField()
    end = serializers.DateTimeField(help_text="now, if the period is open")
    is_open = serializers.BooleanField(help_text="the period has not ended")
    seconds = serializers.FloatField()
    kind = serializers.CharField(
        help_text="cause: capacity, quota, gang, priority, constraint, data, policy; unsaid; earlier: long ago; "
        "or what the job did: starting, running, stopped"
    )
    is_wait = serializers.BooleanField()
    is_admitted = serializers.BooleanField(help_text="the queue had admitted the job")
    plugin = serializers.SerializerMethodField(help_text="scheduler plugin that decided")
    code = serializers.SerializerMethodField(help_text="reason code")
    sentence = serializers.CharField()
    merged = serializers.IntegerField(help_text="number of merged periods; only the oldest has more than one")

    def get_plugin(self, cell: Cell) -> str:
        """Empty if there is none."""
        return str(cell.reason.get("plugin", ""))

    def get_code(self, cell: Cell) -> str:
        """Empty if unknown."""
        return str(cell.reason.get("code", ""))


class RibbonSerializer(serializers.Serializer[Any]):
    """The pending reasons of a job since its submission."""

    sentence = serializers.CharField(help_text="the present state")
    waited_seconds = serializers.FloatField()
    cells = CellSerializer(many=True)


class ReceiptSerializer(serializers.Serializer[Receipt]):
    """One decision to evict. Names of other tenants' jobs are hidden."""

    number = serializers.IntegerField(help_text="number of its first event")
    at = serializers.DateTimeField()
    count = serializers.IntegerField(help_text="number of evicted pods")
    pods = serializers.ListField(child=serializers.CharField())
    nodes = serializers.ListField(child=serializers.CharField())
    action = serializers.CharField()
    plugins = serializers.ListField(child=serializers.CharField(), help_text="plugins that permitted the eviction")
    other = serializers.CharField(help_text="name of the other job; empty for another tenant")
    other_uid = serializers.CharField()
    held = serializers.SerializerMethodField(help_text="resources of the pods, as quantities; empty if hidden")
    shares = serializers.ListField(
        child=serializers.JSONField(), help_text="shares of both sides before and after, by plugin"
    )
    lost_seconds = serializers.FloatField(allow_null=True, help_text="longest run time of the pods")
    lost_gpu_seconds = serializers.FloatField(allow_null=True, help_text="sum over all cards, of any kind")
    returned = serializers.IntegerField(help_text="number of pods that are placed again")
    sentence = serializers.CharField()
    rule = serializers.CharField()
    share_change = serializers.CharField(help_text="change of the shares, as a sentence")

    def get_held(self, receipt: Receipt) -> dict[str, str]:
        """Kubernetes quantities."""
        return receipt.held.quantities()


class ReceiptsSerializer(serializers.Serializer[Any]):
    """Both sides of a job, newest first."""

    yielded = ReceiptSerializer(many=True)
    gained = ReceiptSerializer(many=True)
    queue_position = serializers.CharField(help_text="position in the queue, if the evicted job is pending")


class ClaimantSerializer(serializers.Serializer[Any]):
    """A queue below its deserved share, with pending jobs."""

    queue = serializers.CharField(help_text="empty if you cannot see the queue")
    share = serializers.FloatField(help_text="allocated part of the deserved share")
    pods = serializers.IntegerField(help_text="number of its pending pods")


class ReclaimRiskSerializer(serializers.Serializer[Any]):
    """The pods of a job that other queues may reclaim."""

    pods = serializers.IntegerField(help_text="number of its placed pods")
    now = serializers.IntegerField(help_text="number of pods with borrowed resources")
    most = serializers.IntegerField(help_text="the same, if all other queues used their whole share")
    share = serializers.FloatField(allow_null=True, help_text="allocated part of the queue's deserved share")
    is_safe = serializers.CharField(help_text="why nothing can be reclaimed, as a code; empty if pods can be reclaimed")
    claimants = ClaimantSerializer(many=True)
