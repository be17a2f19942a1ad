"""Serializers of clusters. Credentials are accepted but never returned."""

from typing import Any

from django.utils.translation import gettext_lazy as _
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from hekla.api.documents import refuse_reserved
from hekla.apps.clusters import selectors
from hekla.apps.clusters.models import Cluster, ClusterHealth, StoredClusterKey
from hekla.backends import registry
from hekla.backends.kubernetes.keys import MAX_BYTES, MAX_SERVER
from hekla.cluster_access.health import describe_trouble

_MAX_TOKEN = 16_384


class ClusterHealthSerializer(serializers.ModelSerializer[ClusterHealth]):
    is_reachable = serializers.BooleanField()

    class Meta:
        model = ClusterHealth
        fields = ["is_reachable", "since", "checked_at", "problem", "version", "has_namespace", "missing", "kubelets"]
        fields += ["topology_faults", "metrics_fault"]


class ClusterSerializer(serializers.ModelSerializer[Cluster]):
    is_simulated = serializers.BooleanField()
    health = serializers.SerializerMethodField(help_text="for kinds that report it, after the first check")

    class Meta:
        model = Cluster
        fields = ["name", "kind", "is_simulated", "is_paused", "health"]

    @extend_schema_field(ClusterHealthSerializer(allow_null=True))
    def get_health(self, cluster: Cluster) -> dict[str, Any] | None:
        health = getattr(cluster, "health", None)
        return ClusterHealthSerializer(health).data if health else None


class KeySerializer(serializers.ModelSerializer[StoredClusterKey]):
    """The public part of the credentials of a cluster."""

    added_by = serializers.CharField(source="added_by.username", default=None, allow_null=True)

    class Meta:
        model = StoredClusterKey
        fields = ["server", "holder", "fingerprint", "valid_until", "added_at", "added_by"]


class FullHealthSerializer(ClusterHealthSerializer):
    """Health for operators. `sentence`: why the cluster is unreachable; `detail`: the server's message."""

    sentence = serializers.SerializerMethodField()

    class Meta(ClusterHealthSerializer.Meta):
        fields = [*ClusterHealthSerializer.Meta.fields, "sentence", "detail"]

    def get_sentence(self, health: ClusterHealth) -> str:
        """Empty if the cluster is reachable."""
        return describe_trouble(health.problem)


class ClusterDetailSerializer(ClusterSerializer):
    """One cluster, for operators."""

    key = serializers.SerializerMethodField(help_text="null: the cluster uses its configuration")

    class Meta(ClusterSerializer.Meta):
        fields = [*ClusterSerializer.Meta.fields, "config", "key"]

    @extend_schema_field(FullHealthSerializer(allow_null=True))
    def get_health(self, cluster: Cluster) -> dict[str, Any] | None:
        health = selectors.health(cluster)
        return FullHealthSerializer(health).data if health else None

    @extend_schema_field(KeySerializer(allow_null=True))
    def get_key(self, cluster: Cluster) -> dict[str, Any] | None:
        """The public part of the credentials."""
        key = selectors.key(cluster)
        return KeySerializer(key).data if key else None


def _secret(most: int, **more: Any) -> serializers.CharField:  # noqa: ANN401
    return serializers.CharField(max_length=most, write_only=True, required=False, trim_whitespace=False, **more)


class ClusterChangeSerializer(serializers.Serializer[Any]):
    """Changes of a cluster. Credentials (a kubeconfig, or a server and a token) are never returned."""

    config = serializers.DictField(required=False, help_text="backend configuration")
    is_paused = serializers.BooleanField(required=False)
    kubeconfig = _secret(MAX_BYTES, help_text="Hekla uses its current context")
    server = _secret(MAX_SERVER, help_text="for example https://10.0.0.1:6443")
    authority = _secret(MAX_BYTES, help_text="PEM; default: authorities of the console's machine", allow_blank=True)
    token = _secret(_MAX_TOKEN)
    anyway = serializers.BooleanField(
        write_only=True, default=False, help_text="save even if the connection check fails"
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse a kubeconfig together with a token."""
        by_token = attrs.keys() & {"server", "authority", "token"}
        if "kubeconfig" in attrs and by_token:
            raise serializers.ValidationError({min(by_token): _("Send either a kubeconfig or a token, not both.")})
        return attrs


class NewClusterSerializer(ClusterChangeSerializer):
    """A new cluster."""

    name = serializers.RegexField(
        r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z",
        max_length=40,
        validators=[refuse_reserved],
        error_messages={
            "invalid": _(
                "Use lowercase letters a–z, digits and hyphens. The first and last character cannot be a hyphen."
            )
        },
    )
    kind = serializers.ChoiceField(choices=())

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        super().__init__(*args, **kwargs)
        self.fields["kind"] = serializers.ChoiceField(choices=registry.choices())  # the installed kinds


class ClusterAnswerSerializer(serializers.Serializer[dict[str, Any]]):
    """The result of a connection check. `is_whole`: the cluster is reachable and nothing is missing."""

    is_whole = serializers.BooleanField()
    problem = serializers.CharField(allow_blank=True)
    sentence = serializers.CharField(allow_blank=True, help_text="why the cluster is unreachable")
    detail = serializers.CharField(allow_blank=True, help_text="the server's message")
    version = serializers.CharField(allow_blank=True)
    has_namespace = serializers.BooleanField(allow_null=True)
    missing = serializers.ListField(child=serializers.CharField(), help_text="missing permissions")
    kubelets = serializers.DictField(child=serializers.IntegerField(), help_text="number of nodes by kubelet version")
    topology_faults = serializers.ListField(
        child=serializers.CharField(), help_text="problems of HyperNode objects, as `problem name`"
    )
