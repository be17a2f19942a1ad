"""Queues as REST takes them and tells of them."""

from typing import Any

from django.utils.translation import gettext_lazy as _
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from hekla.apps.clusters import selectors as clusters
from hekla.apps.clusters.models import Cluster
from hekla.apps.queues import selectors as queues
from hekla.apps.queues.models import Queue
from hekla.apps.tenancy import selectors as tenancy
from hekla.domain import formats
from hekla.domain.resources import InvalidQuantity, Resources
from hekla.engine.queue_shares import QueueShares
from hekla.simulation.queue_shares import Loss, ShareForecast


class AmountsField(serializers.DictField):
    """Kubernetes quantities by resource."""

    child = serializers.CharField(max_length=64)

    def to_internal_value(self, data: dict[str, Any]) -> dict[str, Any]:
        amounts = super().to_internal_value(data)
        try:
            Resources.parse(amounts)
        except InvalidQuantity as error:
            raise serializers.ValidationError(f"{error}.") from error
        return dict(amounts)


class QueueSerializer(serializers.ModelSerializer[Queue]):
    """A queue. The service checks that its name is free."""

    name = serializers.RegexField(
        r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z",
        max_length=63,
        error_messages={
            "invalid": _(
                "Use lowercase letters a–z, digits and hyphens. The first and last character cannot be a hyphen."
            )
        },
    )
    cluster = serializers.SlugRelatedField(slug_field="name", queryset=clusters.all_clusters())
    tenants = serializers.SlugRelatedField(
        slug_field="slug", many=True, queryset=tenancy.all_tenants(), required=False, help_text="none: open to all"
    )
    capability = AmountsField(required=False)
    guarantee = AmountsField(required=False)
    deserved = AmountsField(required=False)
    parent = serializers.SlugRelatedField(  # type: ignore[assignment]
        slug_field="name", queryset=queues.all_queues(), required=False, allow_null=True, help_text="null: none"
    )
    weight = serializers.IntegerField(min_value=1, max_value=1_000_000, required=False)
    is_open = serializers.BooleanField(required=False, help_text="short for the states open and closed")

    class Meta:
        model = Queue
        fields = ["name", "cluster", "description", "weight", "priority", "capability", "guarantee", "deserved"]
        fields += ["parent", "reclaimable", "state", "is_open", "tenants"]

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """A state by its name counts more than whether it is open."""
        is_open = attrs.pop("is_open", None)
        if is_open is not None:
            attrs.setdefault("state", Queue.State.OPEN if is_open else Queue.State.CLOSED)
        return attrs

    def validate_name(self, name: str) -> str:
        """A queue keeps its name: jobs, events and manifests speak of it."""
        if self.instance is not None and name != self.instance.name:
            raise serializers.ValidationError(_("A queue cannot be renamed. Create another queue."))
        return name

    def validate_cluster(self, cluster: Cluster) -> Cluster:
        """A queue stays where it is: its jobs run there."""
        if self.instance is not None and cluster != self.instance.cluster:
            raise serializers.ValidationError(_("A queue cannot move to another cluster. Create another queue."))
        return cluster


class QueueDetailSerializer(QueueSerializer):
    """One queue with its manifest, as far as this person may know it."""

    manifest = serializers.SerializerMethodField(help_text="the same as Volcano's Queue")

    class Meta(QueueSerializer.Meta):
        fields = [*QueueSerializer.Meta.fields, "manifest"]

    def get_manifest(self, queue: Queue) -> str:
        """As YAML."""
        document = QueueSerializer(queue).data
        return formats.dump_queue({name: value for name, value in document.items() if name in self.fields})


class MadeQueueSerializer(QueueDetailSerializer):
    """A queue that was made, and what in its manifest has no effect."""

    warnings = serializers.SerializerMethodField()

    class Meta(QueueDetailSerializer.Meta):
        fields = [*QueueDetailSerializer.Meta.fields, "warnings"]

    def get_warnings(self, _queue: Queue) -> list[str]:
        """A sentence for each."""
        return list(self.context.get("warnings", ()))


@extend_schema_field(serializers.DictField(child=serializers.CharField()))
class ReadOnlyQuantitiesField(serializers.Field[Resources, Any, dict[str, str], Any]):
    """Amounts by resource, read only."""

    def to_representation(self, value: Resources) -> dict[str, str]:
        return value.quantities()


class SharesSerializer(serializers.Serializer[QueueShares]):
    """What the engine counts of a queue (`divided_by`: the plugin that says what it deserves; empty: none does)."""

    held = ReadOnlyQuantitiesField(source="allocated", help_text="what its pods hold")
    pending = ReadOnlyQuantitiesField(help_text="what the jobs in its line wait for")
    guarantee = ReadOnlyQuantitiesField()
    deserved = ReadOnlyQuantitiesField()
    bound = ReadOnlyQuantitiesField(source="limit", help_text="the most that it may hold")
    borrowed = ReadOnlyQuantitiesField(help_text="what it holds beyond what it deserves")
    lent = ReadOnlyQuantitiesField(help_text="what it deserves and leaves, as far as others borrow it")
    share = serializers.FloatField(help_text="how much of what it deserves it holds; 1: all")
    divided_by = serializers.CharField(source="plugin")


class PlaceSerializer(serializers.Serializer[dict[str, Any]]):
    """A job that waits, and its place in line, counted from 1 among all jobs of the queue."""

    uid = serializers.UUIDField()
    name = serializers.CharField()
    place = serializers.IntegerField()


class StandingSerializer(serializers.Serializer[dict[str, Any]]):
    """A queue as it stands. `shares` is null where the engine leaves the queue out."""

    name = serializers.CharField()
    state = serializers.ChoiceField(choices=Queue.State.choices)
    waiting = serializers.IntegerField(help_text="how many jobs wait, those of other tenants too")
    inside = serializers.IntegerField(help_text="how many have all their places")
    shares = SharesSerializer(allow_null=True)
    in_line = PlaceSerializer(many=True)


class LossSerializer(serializers.Serializer[Loss]):
    """So many pods of a job would be evicted at once."""

    job = serializers.UUIDField(source="job.uid")
    name = serializers.CharField(source="job.name")
    queue = serializers.CharField(source="job.queue.name")
    pods = serializers.IntegerField()


class ForecastSerializer(serializers.Serializer[ShareForecast]):
    """Every queue of the cluster by name, before and after a change, and who would lose pods by it."""

    before = serializers.DictField(child=SharesSerializer())
    after = serializers.DictField(child=SharesSerializer())
    losses = LossSerializer(many=True)
