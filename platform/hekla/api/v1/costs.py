"""Endpoint of costs: the figures of the cost page."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.v1.measured_periods import PeriodQuerySerializer, PeriodReportSerializer
from hekla.api.views import ApiView, person
from hekla.apps.measures import cost_selectors
from hekla.apps.measures.cost_selectors import COST_PERIODS, CostPart, CostReport, Costs
from hekla.apps.measures.selectors import GpuTimeQuery, GroupBy, Period
from hekla.domain.cost_forecast import CostForecast
from hekla.domain.prices import HOUR_OF, as_decimal
from hekla.lib import clock

_FORM = r"^-?\d+\.\d{6}$"


def _money(**more: Any) -> serializers.RegexField:  # noqa: ANN401
    return serializers.RegexField(_FORM, **more)


class CostQuerySerializer(PeriodQuerySerializer):
    period = serializers.ChoiceField([one.value for one in COST_PERIODS], default=Period.MONTH.value)
    tenant = serializers.CharField(required=False, max_length=200, help_text="short name")
    model = serializers.CharField(required=False, max_length=253, help_text="model of the GPUs")
    by = serializers.ChoiceField([one.value for one in GroupBy], default=GroupBy.TENANT.value, help_text="parts")


class CostPointSerializer(serializers.Serializer[Any]):
    at = serializers.DateTimeField()
    cost = serializers.DictField(child=_money())


class CostPartSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(allow_blank=True, help_text="by model empty for CPU and memory")
    key = serializers.CharField(help_text="name for the filter; empty if it cannot be filtered")
    cost = serializers.DictField(child=_money())
    total = _money()
    before = _money(help_text="total of the period before")


class ResourceCostSerializer(serializers.Serializer[Any]):
    """`hours`: core hours of `cpu`, GiB hours of `memory`, GPU hours of `gpu`."""

    resource = serializers.CharField()
    model = serializers.CharField(allow_blank=True)
    hours = serializers.FloatField()
    cost = _money()


class PastForecastSerializer(serializers.Serializer[Any]):
    month = serializers.DateField()
    forecast = _money()
    actual = _money()
    error = serializers.FloatField(help_text="the difference as a part of the actual cost")


class CostForecastSerializer(serializers.Serializer[Any]):
    """The present month in UTC. `total`: null with too little past. `error`: mean error in past months, or null."""

    begin = serializers.DateTimeField()
    end = serializers.DateTimeField()
    spent = _money()
    total = _money(allow_null=True)
    days = serializers.IntegerField(help_text="whole days whose mean is used")
    error = serializers.FloatField(allow_null=True)
    past = PastForecastSerializer(many=True)


class CostSerializer(PeriodReportSerializer):
    """Exact amounts in `currency`, as decimal texts. `cost`: by class, as of GPU time."""

    period = serializers.CharField(help_text="one of those of the query")  # type: ignore[assignment]
    measured_until = serializers.DateTimeField(allow_null=True)
    priced_since = serializers.DateTimeField(allow_null=True, help_text="begin of the first price list; null: none")
    currency = serializers.CharField(allow_blank=True)
    cost = serializers.DictField(child=_money())
    cost_before = serializers.DictField(child=_money(), help_text="of the period before")
    total = _money()
    points = CostPointSerializer(many=True)
    parts = CostPartSerializer(many=True)
    resources = ResourceCostSerializer(many=True)
    forecast = CostForecastSerializer(allow_null=True)


class CostView(ApiView):
    queries = {"get": CostQuerySerializer}

    @extend_schema(responses=CostSerializer)
    def get(self, request: Request) -> Response:
        """What held resources cost. People who see everything get all, others their tenants' part."""
        query = GpuTimeQuery(**{**self.query, "period": Period(self.query["period"]), "by": GroupBy(self.query["by"])})
        now, user = clock.now(), person(request)
        report = cost_selectors.cost(user, query, now=now)
        return Response(_document(report) | {"forecast": _forecast(cost_selectors.forecast_of(user, query, now=now))})


def _document(report: CostReport) -> dict[str, Any]:
    return {
        "period": report.query.period.value,
        "begin": report.begin,
        "end": report.end,
        "step_seconds": int(report.query.step.total_seconds()),
        "is_simulated": report.is_simulated,
        "measured_until": report.measured_until,
        "priced_since": report.priced_since,
        "currency": report.currency,
        "cost": _costs(report.totals),
        "cost_before": _costs(report.before),
        "total": as_decimal(report.total),
        "points": [{"at": point.at, "cost": _costs(point.costs)} for point in report.points],
        "parts": [_part(part) for part in report.parts],
        "resources": [
            {
                "resource": one.resource.value,
                "model": one.model,
                "hours": one.held / HOUR_OF[one.resource],
                "cost": as_decimal(one.cost),
            }
            for one in report.resources
        ],
    }


def _part(part: CostPart) -> dict[str, Any]:
    return {
        "name": part.name,
        "key": part.key,
        "cost": _costs(part.costs),
        "total": as_decimal(part.total),
        "before": as_decimal(part.before),
    }


def _costs(costs: Costs) -> dict[str, str]:
    return {what.value: as_decimal(amount) for what, amount in costs.items()}


def _forecast(found: CostForecast | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "begin": found.begin,
        "end": found.end,
        "spent": as_decimal(found.spent),
        "total": None if found.total is None else as_decimal(found.total),
        "days": found.days,
        "error": found.error,
        "past": [
            {
                "month": one.month.date(),
                "forecast": as_decimal(one.forecast),
                "actual": as_decimal(one.actual),
                "error": one.error,
            }
            for one in found.past
        ],
    }
