"""Queues as REST takes them and tells of them."""

from typing import Any

from django.utils.translation import gettext_lazy as _
from rest_framework import serializers

from hekla.apps.clusters import selectors as clusters
from hekla.apps.clusters.models import Cluster
from hekla.apps.queues import selectors as queues
from hekla.apps.queues.models import Queue
from hekla.apps.tenancy import selectors as tenancy
from hekla.domain import formats
from hekla.domain.resources import BadQuantity, Resources


class Amounts(serializers.DictField):
    """Kubernetes quantities by resource."""

    child = serializers.CharField(max_length=64)

    def to_internal_value(self, data: dict[str, Any]) -> dict[str, Any]:
        amounts = super().to_internal_value(data)
        try:
            Resources.parse(amounts)
        except BadQuantity as error:
            raise serializers.ValidationError(f"{error}.") from error
        return dict(amounts)


class QueueSerializer(serializers.ModelSerializer[Queue]):
    """A queue, told and (by admins) sent. That a name is taken is for the service to say."""

    name = serializers.RegexField(
        r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z",
        max_length=63,
        error_messages={"invalid": _("Use small letters a–z, digits and hyphens, no hyphen at either end.")},
    )
    cluster = serializers.SlugRelatedField(slug_field="name", queryset=clusters.all_clusters())
    tenants = serializers.SlugRelatedField(
        slug_field="slug", many=True, queryset=tenancy.all_tenants(), required=False, help_text="none: open to all"
    )
    capability = Amounts(required=False)
    guarantee = Amounts(required=False)
    deserved = Amounts(required=False)
    parent = serializers.SlugRelatedField(  # type: ignore[assignment]
        slug_field="name", queryset=queues.all_queues(), required=False, allow_null=True, help_text="null: none"
    )
    weight = serializers.IntegerField(min_value=1, max_value=1_000_000, required=False)

    class Meta:
        model = Queue
        fields = ["name", "cluster", "description", "weight", "priority", "capability", "guarantee", "deserved"]
        fields += ["parent", "reclaimable", "is_open", "tenants"]

    def validate_name(self, name: str) -> str:
        """A queue keeps its name: jobs, events and manifests speak of it."""
        if self.instance is not None and name != self.instance.name:
            raise serializers.ValidationError(_("A queue cannot be renamed; make another one."))
        return name

    def validate_cluster(self, cluster: Cluster) -> Cluster:
        """A queue stays where it is: its jobs run there."""
        if self.instance is not None and cluster != self.instance.cluster:
            raise serializers.ValidationError(_("A queue cannot move to another cluster; make another one."))
        return cluster


class QueueDetailSerializer(QueueSerializer):
    """One queue, and its manifest: with what of it is told to this person."""

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
