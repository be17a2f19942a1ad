"""Serializers of a waiting or running job."""

from typing import Any

from rest_framework import serializers

from hekla.apps.job_history.receipts import Receipt
from hekla.apps.job_history.ribbon import Cell


class CellSerializer(serializers.Serializer[Cell]):
    """A time in which the same was in the way; neighbours that are equal are one."""

    begin = serializers.DateTimeField()
    end = serializers.DateTimeField(help_text="now, where it lasts")
    is_open = serializers.BooleanField(help_text="it lasts")
    seconds = serializers.FloatField()
    kind = serializers.CharField(
        help_text="who refused: capacity, quota, gang, priority, constraint, data, policy; unsaid; earlier: long ago; "
        "or what the job did: starting, running, stopped"
    )
    is_wait = serializers.BooleanField()
    is_admitted = serializers.BooleanField(help_text="its queue had let it in")
    plugin = serializers.SerializerMethodField(help_text="of the scheduler, which refused")
    code = serializers.SerializerMethodField(help_text="what it refused for")
    sentence = serializers.CharField()
    merged = serializers.IntegerField(help_text="how many stretches this one stands for: more than one for the oldest")

    def get_plugin(self, cell: Cell) -> str:
        """Empty where none is named."""
        return str(cell.reason.get("plugin", ""))

    def get_code(self, cell: Cell) -> str:
        """Empty where nothing was said."""
        return str(cell.reason.get("code", ""))


class RibbonSerializer(serializers.Serializer[Any]):
    """Why a job waited, from its submission on."""

    sentence = serializers.CharField(help_text="what is true now")
    waited_seconds = serializers.FloatField()
    cells = CellSerializer(many=True)


class ReceiptSerializer(serializers.Serializer[Receipt]):
    """One decision to evict. What belongs to another tenant has no name here."""

    number = serializers.IntegerField(help_text="of its first event")
    at = serializers.DateTimeField()
    count = serializers.IntegerField(help_text="how many pods made room")
    pods = serializers.ListField(child=serializers.CharField())
    nodes = serializers.ListField(child=serializers.CharField())
    action = serializers.CharField()
    plugins = serializers.ListField(child=serializers.CharField(), help_text="by whose leave")
    other = serializers.CharField(help_text="the other job's name; empty where it is another tenant's")
    other_uid = serializers.CharField()
    held = serializers.SerializerMethodField(help_text="what the pods held, as quantities; empty where not to be known")
    shares = serializers.ListField(
        child=serializers.JSONField(), help_text="before and after, for who gave and who took, by plugin"
    )
    lost_seconds = serializers.FloatField(allow_null=True, help_text="how long the longest had run since its start")
    lost_gpu_seconds = serializers.FloatField(allow_null=True, help_text="of all GPUs together")
    returned = serializers.IntegerField(help_text="how many of the pods have places again")
    sentence = serializers.CharField()
    rule = serializers.CharField()
    share_change = serializers.CharField(help_text="how shares moved, as a sentence")

    def get_held(self, receipt: Receipt) -> dict[str, str]:
        """Kubernetes quantities."""
        return receipt.held.quantities()


class ReceiptsSerializer(serializers.Serializer[Any]):
    """Both sides of a job, newest first."""

    yielded = ReceiptSerializer(many=True)
    gained = ReceiptSerializer(many=True)
    standing = serializers.CharField(help_text="where it stands in its queue, if it waits for having made room")


class ClaimantSerializer(serializers.Serializer[Any]):
    """A queue that has less than it deserves, and jobs that wait."""

    queue = serializers.CharField(help_text="empty where you may not see it")
    share = serializers.FloatField(help_text="what it holds of what it deserves")
    pods = serializers.IntegerField(help_text="how many of its pods wait")


class ExposureSerializer(serializers.Serializer[Any]):
    """What of a job may be taken back for other queues."""

    pods = serializers.IntegerField(help_text="how many of its pods hold a place")
    now = serializers.IntegerField(help_text="how many of them hold what its queue has beyond what it deserves")
    most = serializers.IntegerField(help_text="the same, if all other queues had work enough")
    share = serializers.FloatField(allow_null=True, help_text="what its queue holds of what it deserves")
    is_safe = serializers.CharField(help_text="why nothing is taken back, as a code; empty where it may be")
    claimants = ClaimantSerializer(many=True)
