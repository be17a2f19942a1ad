"""Autoscaling in manifests: an annotation on a pod template, or the metrics of an `elasticPolicy`.

Kubeflow makes a horizontal autoscaler of these metrics. The one that is read is the mean of a pod metric of NVIDIA's
exporter (`DCGM_FI_DEV_GPU_UTIL`), the usual source of the utilization of GPUs.
"""

import re
from typing import Any

from hekla.domain.autoscaling import Autoscaling
from hekla.domain.formats import annotations as words
from hekla.domain.formats.fields import Fields
from hekla.domain.formats.reader import ManifestReader
from hekla.domain.task_spec import TaskSpec
from hekla.domain.translation import translate
from hekla.domain.validation import join, quote

METRIC = "DCGM_FI_DEV_GPU_UTIL"
_PAIR = re.compile(r"(?P<name>[a-z-]{1,40})=(?P<number>\d{1,9})", re.ASCII)
_FIELDS = tuple(Autoscaling.model_fields)


def read_annotation(reading: ManifestReader, annotations: dict[str, Any], path: str, target: str) -> Any:  # noqa: ANN401
    """Take the annotation of a pod template at `path`. The JobSpec judges the numbers."""
    text = annotations.pop(words.AUTOSCALING, None)
    path = f"{path}.{words.AUTOSCALING}"
    reading.findings.origins[target] = path
    if text is None:
        return None
    pairs = [_PAIR.fullmatch(part.strip()) for part in text.split(",")] if isinstance(text, str) else []
    found = {pair["name"].replace("-", "_"): int(pair["number"]) for pair in pairs if pair}
    if not pairs or len(found) < len(pairs) or found.keys() - set(_FIELDS):
        message = translate(
            "Must be numbers, for example max-replicas=4,gpu-utilization=70, not {given}.", given=quote(text)
        )
        reading.findings.problem(path, message)
        return None
    return found


def written_annotation(task: TaskSpec) -> str | None:
    """The annotation of the task's pod template; None without autoscaling."""
    if task.autoscaling is None:
        return None
    numbers = task.autoscaling.model_dump(exclude_defaults=True)
    return ",".join(f"{name.replace('_', '-')}={number}" for name, number in numbers.items())


def read_metrics(reading: ManifestReader, policy: Fields, most: object, target: str) -> dict[str, Any] | None:
    """The autoscaling that the metrics of an elastic policy request, up to `most` replicas; None without any.

    Other metrics are reported as without effect.
    """
    found = None
    for metric in policy.list_of_fields("metrics"):
        pods = metric.fields("pods")
        named, goal = pods.fields("metric"), pods.fields("target")
        if metric.take("type") == "Pods" and named.take("name") == METRIC and goal.take("type") == "AverageValue":
            reading.findings.origins[join(target, "gpu_utilization")] = goal.at("averageValue")
            found = {"max_replicas": most, "gpu_utilization": _percent(goal.take("averageValue"))}
            metric.close()
        else:
            why = translate("only the mean of {metric} of the pods scales a task.", metric=METRIC)
            reading.findings.not_honoured(metric.path, why)
    policy.ignore("metrics")
    return found


def _percent(value: object) -> object:
    """Kubernetes writes amounts as text, too."""
    return int(value) if isinstance(value, str) and re.fullmatch(r"\d{1,9}", value, re.ASCII) else value
