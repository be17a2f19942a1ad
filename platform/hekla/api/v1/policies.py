"""Endpoints of the scheduling policy of a cluster: read, preview, replace."""

from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.documents import validated
from hekla.api.views import ApiView, person, respond
from hekla.apps.accounts.roles import Permission
from hekla.apps.accounts.services import actor_of, require
from hekla.apps.clusters import selectors, services
from hekla.apps.clusters.models import Cluster, PolicyVersion
from hekla.domain.errors import NotFound
from hekla.domain.scheduling_inputs import Input
from hekla.engine import policy
from hekla.engine.inputs import Lack
from hekla.lib import clock
from hekla.scheduling import policies, policy_check
from hekla.simulation.policy_trial import try_policy


class PolicyWarningSerializer(serializers.Serializer[Any]):
    """An input of scheduling that a plugin or an action needs and that the cluster does not supply."""

    path = serializers.CharField(help_text="where the policy names it, for example tiers[0].plugins[2].name")
    plugin = serializers.CharField()
    input = serializers.ChoiceField([one.value for one in Input])
    lack = serializers.ChoiceField([one.value for one in Lack], help_text="what it does without the input")
    message = serializers.CharField()


class ClusterPolicySerializer(serializers.Serializer[Any]):
    """A scheduler configuration in Volcano's format."""

    number = serializers.IntegerField(read_only=True, help_text="number of the version; 0: default policy")
    text = serializers.CharField(max_length=policy.MAX_POLICY_BYTES, trim_whitespace=False)
    note = serializers.CharField(max_length=200, required=False, allow_blank=True, help_text="reason for the change")
    created_at = serializers.DateTimeField(read_only=True, allow_null=True)
    created_by = serializers.CharField(read_only=True, allow_null=True)
    warnings = serializers.SerializerMethodField(help_text="inputs that its plugins lack in this cluster")

    @extend_schema_field(PolicyWarningSerializer(many=True))
    def get_warnings(self, _policy: PolicyVersion) -> Any:  # noqa: ANN401
        """The warnings that the view has found."""
        return PolicyWarningSerializer(self.context["warnings"], many=True).data


class TextSerializer(serializers.Serializer[Any]):
    """A policy to preview."""

    text = serializers.CharField(max_length=policy.MAX_POLICY_BYTES, trim_whitespace=False)


class TrialOutcomeSerializer(serializers.Serializer[Any]):
    """The result of a cycle for a job."""

    is_let_in = serializers.BooleanField(help_text="the queue admits the job")
    starts = serializers.IntegerField(help_text="pods that start")
    yields = serializers.IntegerField(help_text="pods that are evicted")


class DifferenceSerializer(serializers.Serializer[Any]):
    """A job with different results under the two policies."""

    uid = serializers.UUIDField(source="job.uid")
    name = serializers.CharField(source="job.name")
    queue = serializers.CharField(source="job.queue.name")
    now = TrialOutcomeSerializer(help_text="result with the active policy")
    then = TrialOutcomeSerializer(help_text="result with the new policy")


class FaultSerializer(serializers.Serializer[Any]):
    """A plugin or an action that failed."""

    name = serializers.CharField()
    point = serializers.CharField()
    error = serializers.CharField()


class TrialSerializer(serializers.Serializer[Any]):
    """The differences in the next cycle under another policy."""

    jobs = serializers.IntegerField(help_text="number of jobs checked")
    differences = DifferenceSerializer(many=True)
    faults = FaultSerializer(many=True)
    warnings = PolicyWarningSerializer(many=True, help_text="inputs that its plugins lack in this cluster")


class PolicyView(ApiView):
    @extend_schema(responses=ClusterPolicySerializer)
    def get(self, request: Request, name: str) -> Response:
        """The active policy (operators and platform admins)."""
        require(person(request), Permission.SEE_EVERYTHING)
        return _active(_cluster(name))

    @extend_schema(request=ClusterPolicySerializer, responses=ClusterPolicySerializer)
    def put(self, request: Request, name: str) -> Response:
        """Replace the policy, from the next cycle on. It is validated first.

        It is refused if a plugin needs an input that this cluster does not supply, and would refuse all work or make
        wrong decisions without it. `warnings` lists plugins that have no effect, or less.
        """
        user = person(request)
        require(user, Permission.MANAGE_CLUSTERS)
        cluster, values = _cluster(name), validated(ClusterPolicySerializer(data=request.data))
        policy_check.parse_for(cluster, values["text"])
        note = values.get("note", "")
        services.set_policy(cluster, values["text"], note=note, by=user, actor=actor_of(user), now=clock.now())
        return _active(cluster)


class PolicyTrialView(ApiView):
    @extend_schema(request=TextSerializer, responses=TrialSerializer)
    def post(self, request: Request, name: str) -> Response:
        """Compare the next cycle under another policy with the active one. Nothing is saved."""
        require(person(request), Permission.MANAGE_CLUSTERS)
        cluster, values = _cluster(name), validated(TextSerializer(data=request.data))
        wanted = policy.parse(values["text"])
        trial = try_policy(cluster, policies.in_force(cluster), wanted, now=clock.now())
        return respond(TrialSerializer(trial))


def _cluster(name: str) -> Cluster:
    found = selectors.all_clusters().filter(name=name).first()
    if found is None:
        raise NotFound(_("Unknown cluster."))
    return found


def _active(cluster: Cluster) -> Response:
    """The active policy, with its warnings."""
    row = selectors.policies(cluster).first() or policies.first()
    return respond(ClusterPolicySerializer(row, context={"warnings": policy_check.warnings_in_force(cluster)}))
