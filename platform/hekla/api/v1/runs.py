"""Jobs as runs, with their parameters and metrics: those of a batch, and any jobs beside each other."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.views import ApiView, person, respond
from hekla.apps.batches.comparison import MOST_JOBS, compare
from hekla.apps.job_metrics import ranking, selectors
from hekla.apps.job_metrics.ranking import Run
from hekla.domain.metric_series import curve


class RankingQuery(serializers.Serializer[Any]):
    """How the best job is found."""

    metric = serializers.CharField(required=False, max_length=41, help_text="default: the one that most jobs have")
    goal = serializers.ChoiceField(choices=ranking.GOALS, required=False, help_text="default: by the metric's name")
    value = serializers.ChoiceField(choices=ranking.VALUES, default="last", help_text="which value of a job counts")


class ComparisonQuery(RankingQuery):
    job = serializers.ListField(
        child=serializers.UUIDField(), min_length=1, max_length=MOST_JOBS, help_text="uid of a job, at most 50 of them"
    )
    points = serializers.BooleanField(default=False, help_text="with the curves of the metric")


class MetricSerializer(serializers.Serializer[Any]):
    """The values of one metric that a job has printed so far. `last_step` and so on: the steps of these values."""

    last = serializers.FloatField()
    min = serializers.FloatField()
    max = serializers.FloatField()
    count = serializers.IntegerField()
    last_step = serializers.FloatField()
    min_step = serializers.FloatField()
    max_step = serializers.FloatField()


class ComparedRunSerializer(serializers.Serializer[Any]):
    """A job with its metrics by name. `attempt`: of a batch, whose last attempts count."""

    number = serializers.IntegerField()
    attempt = serializers.IntegerField()
    parameters = serializers.DictField(child=serializers.CharField(allow_blank=True))
    job = serializers.CharField(source="job.name")
    uid = serializers.UUIDField(source="job.uid")
    phase = serializers.CharField(source="job.phase")
    reason = serializers.CharField(source="job.reason")
    metrics = serializers.DictField(child=MetricSerializer())


class BestSerializer(serializers.Serializer[Any]):
    """The job with the best value of a metric. `goal`: whether the lowest or the highest is best."""

    job = serializers.CharField()
    uid = serializers.UUIDField()
    metric = serializers.CharField()
    goal = serializers.ChoiceField(choices=ranking.GOALS)
    value = serializers.FloatField()


class CurveSerializer(serializers.Serializer[Any]):
    """The curve of a metric, at most 256 points with every peak. `seconds`: since the start of the pod, if known."""

    uid = serializers.UUIDField()
    steps = serializers.ListField(child=serializers.FloatField())
    values = serializers.ListField(child=serializers.FloatField())
    seconds = serializers.ListField(child=serializers.FloatField(allow_null=True))


class ComparisonSerializer(serializers.Serializer[Any]):
    """Jobs beside each other. `varying`: the settings that differ; `metrics`: at most 200, the most common first.

    `curves`: of the chosen metric, with `points` only.
    """

    varying = serializers.ListField(child=serializers.CharField())
    metrics = serializers.ListField(child=serializers.CharField())
    best = BestSerializer(allow_null=True)
    jobs = ComparedRunSerializer(many=True)
    curves = CurveSerializer(many=True)


class JobComparisonView(ApiView):
    queries = {"get": ComparisonQuery}

    @extend_schema(responses=ComparisonSerializer)
    def get(self, request: Request) -> Response:
        """Compare up to 50 jobs: the settings that differ between them, the metrics that they print, and the best job.

        404 if you cannot see one of the jobs.
        """
        wanted = dict(self.query)
        runs = compare(wanted.pop("job"), person(request))
        with_points = wanted.pop("points")
        order = ranking.ranking(runs, **wanted)
        found = {
            "varying": ranking.varying_parameters(runs),
            "metrics": ranking.metric_names(runs),
            "best": best_of(runs, wanted),
            "jobs": runs,
            "curves": _curves(runs, order.metric) if order and with_points else [],
        }
        return respond(ComparisonSerializer(found))


def best_of(runs: Sequence[Run], chosen: Mapping[str, str]) -> dict[str, Any] | None:
    """The best run by this ranking, as data; None if no completed job has printed its metric."""
    order = ranking.ranking(runs, **chosen)
    if order and chosen.get("metric", order.metric) != order.metric:
        return None
    best = ranking.best_run(runs, order)
    if best is None or order is None:
        return None
    value = best.value(order.metric, order.value)
    return {
        "job": best.job.name,
        "uid": str(best.job.uid),
        "metric": order.metric,
        "goal": order.goal,
        "value": value,
    }


def _curves(runs: Sequence[Run], metric: str) -> list[dict[str, Any]]:
    stored = selectors.points_of([run.job.pk for run in runs], metric)
    found = []
    for run in runs:
        if run.job.pk in stored:
            steps, values, seconds = zip(*curve(orjson.loads(stored[run.job.pk])), strict=True)
            found.append({"uid": run.job.uid, "steps": steps, "values": values, "seconds": seconds})
    return found
