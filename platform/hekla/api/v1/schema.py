"""The OpenAPI document. The schemas of request documents come from their models, such as JobSpec."""

from functools import cache
from typing import Any

from django.utils.translation import get_language
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.views import SpectacularJSONAPIView
from pydantic import BaseModel
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from hekla.api.throttles import PerPersonThrottle
from hekla.apps.announcements.models import Announcement
from hekla.apps.policy_lab.models import LabRun
from hekla.apps.queues.models import Queue
from hekla.backends import registry
from hekla.domain.alert_rules import AlertRuleSpec
from hekla.domain.flows import FlowSpec
from hekla.domain.phases import FlowPhase, GangPhase, JobPhase, PodPhase
from hekla.domain.prices import PriceSpec
from hekla.domain.reports import ReportSpec
from hekla.domain.scaling import JobScale
from hekla.domain.schedules import ScheduleSpec
from hekla.domain.sweeps import SweepSpec

JOB_SPEC = {"$ref": "#/components/schemas/JobSpec"}
JOB_SIZE = {"$ref": "#/components/schemas/JobSize"}
FLOW_SPEC = {"$ref": "#/components/schemas/FlowSpec"}
SWEEP_SPEC = {"$ref": "#/components/schemas/SweepSpec"}
SCHEDULE_SPEC = {"$ref": "#/components/schemas/ScheduleSpec"}
SCHEDULE_CHANGE = {"$ref": "#/components/schemas/ScheduleChange"}
ALERT_RULE_SPEC = {"$ref": "#/components/schemas/AlertRuleSpec"}
ALERT_RULE_CHANGE = {"$ref": "#/components/schemas/AlertRuleChange"}
PRICE_SPEC = {"$ref": "#/components/schemas/PriceSpec"}
REPORT_SPEC = {"$ref": "#/components/schemas/ReportSpec"}
REPORT_CHANGE = {"$ref": "#/components/schemas/ReportChange"}
_NESTED_JOB = {"$ref": "#/components/schemas/NestedJobSpec"}
_PHASES = (JobPhase, FlowPhase, GangPhase, PodPhase)
_DOCUMENTS: dict[str, type[BaseModel]] = {
    "AlertRuleSpec": AlertRuleSpec,
    "FlowSpec": FlowSpec,
    "PriceSpec": PriceSpec,
    "ReportSpec": ReportSpec,
    "ScheduleSpec": ScheduleSpec,
    "SweepSpec": SweepSpec,
    "JobSize": JobScale,
}
"""Models of request documents. JobSpec is not listed, because some of these contain it."""


def _components() -> dict[str, Any]:
    """The JSON schemas of the models in `_DOCUMENTS` and of all models inside them, by name."""
    found: dict[str, Any] = {}
    for name, model in _DOCUMENTS.items():
        schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
        found |= {**schema.pop("$defs"), name: schema}
    found["NestedJobSpec"] = {
        **found["JobSpec"],
        "required": ["tasks"],
        "description": "a JobSpec with an optional name, because the flow, sweep or schedule around it names its jobs",
    }
    found["StepSpec"]["properties"]["job"] = {"anyOf": [_NESTED_JOB, {"type": "null"}], "default": None}
    found["SweepSpec"]["properties"]["job"] = found["ScheduleSpec"]["properties"]["job"] = _NESTED_JOB
    found["AlertRuleChange"] = {name: value for name, value in found["AlertRuleSpec"].items() if name != "required"}
    found["ReportChange"] = {name: value for name, value in found["ReportSpec"].items() if name != "required"}
    found["ScheduleChange"] = {name: value for name, value in found["ScheduleSpec"].items() if name != "required"}
    return found


@cache
def _settings() -> dict[str, Any]:
    """The settings of drf-spectacular, computed on first use: most processes never need them."""
    return {
        "OAS_VERSION": "3.1.1",  # its JSON Schema has null types, as the schema of JobSpec
        "APPEND_COMPONENTS": {"schemas": _components()},
        "POSTPROCESSING_HOOKS": ["drf_spectacular.hooks.postprocess_schema_enums", "hekla.api.links.add_links"],
        "ENUM_NAME_OVERRIDES": {
            **{kind.__name__: [(p.value, p.value) for p in kind] for kind in _PHASES},
            "ClusterKind": registry.choices(),
            "AnnouncementLevel": Announcement.Level.choices,
            "QueueState": Queue.State.choices,
            "ExperimentState": [(state, state) for state in LabRun.State.values],
        },
    }


@cache
def document(_language: str | None) -> dict[str, Any]:
    """The document in the active language. It is the same for all people, and takes a second to generate."""
    found: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    return found


class SchemaView(SpectacularJSONAPIView):
    """The OpenAPI document of all endpoints, for clients."""

    authentication_classes = APIView.authentication_classes
    permission_classes = APIView.permission_classes
    throttle_classes = (PerPersonThrottle,)

    def __init__(self, **initial: Any) -> None:  # noqa: ANN401  (as in Django)
        super().__init__(**initial)
        self.custom_settings = _settings()

    def _get_schema_response(self, request: Request) -> Response:
        name = self._get_filename(request, version=None)  # type: ignore[no-untyped-call]
        return Response(document(get_language()), headers={"Content-Disposition": f'inline; filename="{name}"'})
