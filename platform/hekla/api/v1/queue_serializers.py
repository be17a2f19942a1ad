"""Serializers of queues, their shares and previews."""

from typing import Any

from django.utils.translation import gettext_lazy as _
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from hekla.api.documents import QuantityField
from hekla.apps.clusters import selectors as clusters
from hekla.apps.clusters.models import Cluster
from hekla.apps.queues import selectors as queues
from hekla.apps.queues.models import JOB_ORDERS, Queue
from hekla.apps.tenancy import selectors as tenancy
from hekla.domain import formats, queue_settings
from hekla.domain.resources import InvalidQuantity, Resources
from hekla.engine.queue_shares import QueueShares
from hekla.scheduling.card_model_usage import CardModelUsage
from hekla.simulation import queue_descriptions
from hekla.simulation.queue_shares import PodLoss, ShareForecast


class AmountsField(serializers.DictField):
    """Kubernetes quantities by resource."""

    child = QuantityField()

    def to_internal_value(self, data: dict[str, Any]) -> dict[str, Any]:
        amounts = super().to_internal_value(data)
        try:
            Resources.parse(amounts)
        except InvalidQuantity as error:
            raise serializers.ValidationError(f"{error}.") from error
        return dict(amounts)

    def to_representation(self, value: dict[str, Any]) -> dict[str, str]:
        """The stored amounts, without a field of its own for each."""
        return {name: str(amount) for name, amount in value.items()}


class GroupNamesField(serializers.ListField):
    """A list of node groups; the service checks their names."""

    child = serializers.CharField(max_length=queue_settings.MAX_NAME)

    def __init__(self, **more: Any) -> None:  # noqa: ANN401
        super().__init__(max_length=queue_settings.MAX_GROUPS, required=False, **more)

    def to_representation(self, data: list[str]) -> list[str]:
        """The stored names, without a field of its own for each."""
        return list(data)


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
        slug_field="slug", many=True, queryset=tenancy.all_tenants(), required=False, help_text="empty: all tenants"
    )
    capability = AmountsField(required=False)
    guarantee = AmountsField(required=False)
    deserved = AmountsField(required=False)
    parent = serializers.SlugRelatedField(  # type: ignore[assignment]
        slug_field="name", queryset=queues.all_queues(), required=False, allow_null=True, help_text="null: none"
    )
    job_order = serializers.ChoiceField(
        choices=JOB_ORDERS,
        allow_blank=True,
        required=False,
        help_text="order of its pending jobs; empty: as the policy",
    )
    required_node_groups = GroupNamesField(help_text="its pods use only these node groups, or preferred ones")
    preferred_node_groups = GroupNamesField(help_text="its pods use these node groups first")
    excluded_node_groups = GroupNamesField(help_text="its pods never use these node groups")
    avoided_node_groups = GroupNamesField(help_text="its pods use these node groups last")
    node_group_limits = serializers.DictField(
        child=AmountsField(), required=False, help_text="the most that its pods may use in each node group"
    )
    card_quota = serializers.DictField(
        child=serializers.IntegerField(min_value=0, max_value=queue_settings.MAX_CARDS),
        required=False,
        help_text="the most cards of each model that its pods may hold; {}: no limit, a model not named: none",
    )
    weight = serializers.IntegerField(min_value=1, max_value=1_000_000, required=False)
    is_open = serializers.BooleanField(required=False, help_text="short form of the states open and closed")
    allow_unknown_resources = serializers.BooleanField(
        required=False, write_only=True, help_text="accept resources that no node of the cluster has yet"
    )

    class Meta:
        model = Queue
        fields = ["name", "cluster", "description", "weight", "priority", "capability", "guarantee", "deserved"]
        fields += ["parent", "reclaimable", *queue_settings.OF_ANNOTATIONS, *queue_settings.AFFINITY]
        fields += ["state", "is_open", "tenants", "allow_unknown_resources"]

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Turn `is_open` into a state, unless the request has `state` too."""
        is_open = attrs.pop("is_open", None)
        if is_open is not None:
            attrs.setdefault("state", Queue.State.OPEN if is_open else Queue.State.CLOSED)
        return attrs

    def validate_name(self, name: str) -> str:
        """Refuse to rename a queue, because jobs, events and manifests refer to its name."""
        if self.instance is not None and name != self.instance.name:
            raise serializers.ValidationError(_("A queue cannot be renamed. Create another queue."))
        return name

    def validate_cluster(self, cluster: Cluster) -> Cluster:
        """Refuse to move a queue to another cluster, because its jobs run there."""
        if self.instance is not None and cluster != self.instance.cluster:
            raise serializers.ValidationError(_("A queue cannot move to another cluster. Create another queue."))
        return cluster


class QueueDetailSerializer(QueueSerializer):
    """One queue with its manifest, limited to what this person can see."""

    manifest = serializers.SerializerMethodField(help_text="as Volcano's Queue")

    class Meta(QueueSerializer.Meta):
        fields = [*QueueSerializer.Meta.fields, "manifest"]

    def get_manifest(self, queue: Queue) -> str:
        """As YAML."""
        document = QueueSerializer(queue).data
        return formats.dump_queue({name: value for name, value in document.items() if name in self.fields})


class MadeQueueSerializer(QueueDetailSerializer):
    """A saved queue, with warnings: settings without effect, and guarantees beyond the cluster."""

    warnings = serializers.SerializerMethodField()

    class Meta(QueueDetailSerializer.Meta):
        fields = [*QueueDetailSerializer.Meta.fields, "warnings"]

    def get_warnings(self, _queue: Queue) -> list[str]:
        """One sentence for each."""
        return list(self.context.get("warnings", ()))


@extend_schema_field(serializers.DictField(child=serializers.CharField()))
class ReadOnlyQuantitiesField(serializers.Field[Resources, Any, dict[str, str], Any]):
    """Amounts by resource, read only."""

    def to_representation(self, value: Resources) -> dict[str, str]:
        return value.quantities()


class SharesSerializer(serializers.Serializer[QueueShares]):
    """The engine's figures of a queue. `divided_by`: the plugin that computes the deserved share; can be empty."""

    held = ReadOnlyQuantitiesField(source="allocated", help_text="allocated to its pods")
    pending = ReadOnlyQuantitiesField(help_text="requested by its pending jobs")
    guarantee = ReadOnlyQuantitiesField()
    deserved = ReadOnlyQuantitiesField()
    bound = ReadOnlyQuantitiesField(source="limit", help_text="limit of the queue")
    borrowed = ReadOnlyQuantitiesField(help_text="allocated beyond the deserved share")
    lent = ReadOnlyQuantitiesField(help_text="part of the deserved share that other queues borrow")
    share = serializers.FloatField(help_text="allocated part of the deserved share; 1: all")
    divided_by = serializers.CharField(source="plugin")


class QueuePositionSerializer(serializers.Serializer[dict[str, Any]]):
    """A pending job, and its position among all jobs of the queue, counted from 1."""

    uid = serializers.UUIDField()
    name = serializers.CharField()
    place = serializers.IntegerField()


class CardModelUsageSerializer(serializers.Serializer[CardModelUsage]):
    """The cards of one model that a queue limits."""

    model = serializers.CharField()
    held = serializers.FloatField(help_text="held by pods of the queue and of its child queues")
    most = serializers.IntegerField(help_text="limit of the queue")


class QueueStatusSerializer(serializers.Serializer[dict[str, Any]]):
    """The present state of a queue. `shares` is null if the engine does not use the queue."""

    name = serializers.CharField()
    state = serializers.ChoiceField(choices=Queue.State.choices)
    waiting = serializers.IntegerField(help_text="number of pending jobs, including other tenants")
    inside = serializers.IntegerField(help_text="number of jobs with all pods placed")
    shares = SharesSerializer(allow_null=True)
    cards = CardModelUsageSerializer(many=True, help_text="by model; empty without limits on cards")
    in_line = QueuePositionSerializer(many=True)


class PodLossSerializer(serializers.Serializer[PodLoss]):
    """The number of pods of a job that would be evicted at once."""

    job = serializers.UUIDField(source="job.uid")
    name = serializers.CharField(source="job.name")
    queue = serializers.CharField(source="job.queue.name")
    pods = serializers.IntegerField()


class ForecastSerializer(serializers.Serializer[ShareForecast]):
    """All queues of the cluster before and after a change, and the jobs that would lose pods."""

    before = serializers.DictField(child=SharesSerializer())
    after = serializers.DictField(child=SharesSerializer())
    losses = PodLossSerializer(many=True)
    effects = serializers.SerializerMethodField(help_text="what queues and pending jobs would lose, in sentences")
    warnings = serializers.SerializerMethodField(
        help_text="guarantees beyond the cluster and settings without effect, in sentences"
    )

    def get_effects(self, forecast: ShareForecast) -> list[str]:
        """One sentence for each."""
        return queue_descriptions.effects(forecast)

    def get_warnings(self, forecast: ShareForecast) -> list[str]:
        """One sentence for each."""
        over = queue_descriptions.over_commitments(forecast.over_commitments)
        return [*over, *self.context.get("warnings", ())]
