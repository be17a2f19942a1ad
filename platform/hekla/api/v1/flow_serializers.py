"""Serializers of templates and flows. They are sent as documents, which `domain` validates."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from hekla.apps.flows import overview, selectors
from hekla.apps.flows.facts import spec_of
from hekla.apps.flows.models import Flow, JobTemplate
from hekla.domain import formats
from hekla.domain.jobspec import JobSpec


class TemplateSerializer(serializers.ModelSerializer[JobTemplate]):
    """A template in a list."""

    tenant = serializers.CharField(source="tenant.slug")
    owner = serializers.CharField(source="owner.username")

    class Meta:
        model = JobTemplate
        fields = ["uid", "name", "tenant", "owner", "created_at", "changed_at"]


class TemplateDetailSerializer(TemplateSerializer):
    """A template with its job."""

    spec = serializers.JSONField()
    manifest = serializers.SerializerMethodField(help_text="as Volcano's JobTemplate")

    class Meta(TemplateSerializer.Meta):
        fields = [*TemplateSerializer.Meta.fields, "spec", "manifest"]

    def get_manifest(self, template: JobTemplate) -> str:
        return formats.dump_template(JobSpec.parse(template.spec))


class SavedTemplatesSerializer(serializers.Serializer[Any]):
    templates = TemplateDetailSerializer(many=True)
    warnings = serializers.ListField(
        child=serializers.CharField(), help_text="one sentence for each field without effect"
    )


class StepSerializer(serializers.Serializer[Any]):
    """A step. `phase`: phase of its job, or `waits` (not started), `skipped` (never starts), `gone` (job deleted)."""

    name = serializers.CharField()
    phase = serializers.CharField()
    template = serializers.CharField(help_text="empty: the flow contained the job")
    job = serializers.UUIDField(source="job.uid", default=None, allow_null=True)
    waits_for = serializers.ListField(child=serializers.CharField())
    reasons = serializers.ListField(child=serializers.CharField(), help_text="reasons why the step has not started")
    started_at = serializers.DateTimeField(allow_null=True)


class FlowSerializer(serializers.ModelSerializer[Flow]):
    """A flow in a list."""

    tenant = serializers.CharField(source="tenant.slug")
    owner = serializers.CharField(source="owner.username")
    is_over = serializers.SerializerMethodField()

    class Meta:
        model = Flow
        fields = ["uid", "name", "tenant", "owner", "phase", "is_over", "started_at", "stopped_at", "ended_at"]

    def get_is_over(self, flow: Flow) -> bool:
        return flow.ended_at is not None


class FlowDetailSerializer(FlowSerializer):
    """A flow with its steps."""

    spec = serializers.JSONField()
    steps = serializers.SerializerMethodField()
    manifest = serializers.SerializerMethodField(help_text="as Volcano's JobFlow")

    class Meta(FlowSerializer.Meta):
        fields = [*FlowSerializer.Meta.fields, "spec", "steps", "manifest"]

    @extend_schema_field(StepSerializer(many=True))
    def get_steps(self, flow: Flow) -> Any:  # noqa: ANN401  (serialized data)
        views = overview.steps(flow, selectors.steps_of(flow))
        return StepSerializer(list(views.values()), many=True).data

    def get_manifest(self, flow: Flow) -> str:
        return formats.dump_flow(spec_of(flow))


class StartedSerializer(serializers.Serializer[Any]):
    flow = FlowDetailSerializer()
    warnings = serializers.ListField(child=serializers.CharField())


class CheckedJobSerializer(serializers.Serializer[Any]):
    step = serializers.CharField()
    spec = serializers.JSONField()


class CheckedFlowSerializer(serializers.Serializer[Any]):
    """The response to `dry_run`: the jobs that would be submitted."""

    jobs = CheckedJobSerializer(many=True)
    warnings = serializers.ListField(child=serializers.CharField())
