"""The configuration of a simulated cluster."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field, JsonValue, model_validator

from hekla.backends.base import NodeInfo
from hekla.backends.card_config import Cards, described
from hekla.backends.config import BackendConfig, ClusterConfig, FieldWords, Quantities
from hekla.domain.card_resources import product_labels
from hekla.domain.cards import amounts, annotations
from hekla.domain.cluster_objects import MAX_OBJECTS, ObjectFacts, ObjectKind, template_name
from hekla.domain.cpu_sets import MAX_CPUS
from hekla.domain.field_types import Label
from hekla.domain.numa import MAX_CELLS, NumaTopology, TopologyPolicy
from hekla.domain.placement import LabelSelector
from hekla.domain.resources import Resources, parse_quantity
from hekla.domain.taints import Taint, TaintEffect
from hekla.domain.translation import gettext_noop, translate
from hekla.domain.volumes import ObjectName
from hekla.engine import device_objects

PODS = 110
Seconds = Annotated[float, Field(ge=0, le=1e9)]
_WORD = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_LABEL_KEY = rf"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?{_WORD}$"
_LABEL_VALUE = rf"^({_WORD})?$"


class SecondsRange(BackendConfig):
    """A range of times with a uniform distribution, in simulated seconds."""

    words: ClassVar[FieldWords] = {
        "min": (gettext_noop("At least (seconds)"), ""),
        "max": (gettext_noop("At most (seconds)"), ""),
    }

    min: Seconds
    max: Seconds


class TaintConfig(BackendConfig):
    """A taint of simulated nodes, with the fields and rules of Kubernetes."""

    words: ClassVar[FieldWords] = {
        "key": (gettext_noop("Key"), ""),
        "value": (gettext_noop("Value"), ""),
        "effect": (gettext_noop("Effect"), ""),
    }

    key: Annotated[str, Field(pattern=_LABEL_KEY, max_length=317)]
    value: Annotated[str, Field(pattern=_LABEL_VALUE, max_length=63)] = ""
    effect: TaintEffect


def _read_object(document: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    """The object, if it can be read. Raises ValueError."""
    device_facts(document)
    return document


DeviceObject = Annotated[dict[str, JsonValue], AfterValidator(_read_object)]


def device_facts(document: Mapping[str, Any]) -> ObjectFacts:
    """What a Kubernetes object in the configuration says. Raises ValueError."""
    try:
        kind, name, spec = ObjectKind(document["kind"]), str(document["metadata"]["name"]), document["spec"]
        if kind is ObjectKind.RESOURCE_CLAIM_TEMPLATE:
            name, spec = template_name("", name).removeprefix("/"), spec["spec"]
        body = {"metadata": {"namespace": "", "name": name}, "spec": spec}
        if field := device_objects.LISTS.get(kind):
            device_objects.devices({field: [body]})
        return ObjectFacts.of(kind, name, body)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(translate("This is not a valid object: {error}", error=error)) from error


class NumaConfig(BackendConfig):
    """The NUMA cells of a node: the CPUs of each. Its simulated kubelet pins pods that request whole CPUs to cells."""

    words: ClassVar[FieldWords] = {
        "topology_policy": (gettext_noop("Topology policy"), ""),
        "cells": (gettext_noop("CPUs of each cell"), gettext_noop("One number per line.")),
    }

    topology_policy: TopologyPolicy = TopologyPolicy.BEST_EFFORT
    cells: Annotated[tuple[Annotated[int, Field(ge=1, le=MAX_CPUS)], ...], Field(min_length=1, max_length=MAX_CELLS)]

    def topology(self) -> NumaTopology:
        """Of a node without pods."""
        return NumaTopology(str(self.topology_policy), "static", tuple((cpus, cpus) for cpus in self.cells))


class SimulatedNodeConfig(BackendConfig):
    """One node, or `count` equal nodes, whose names get a number. `images`: sizes by name, as `{"tool:1": "5Gi"}`.

    `usage`: what the node uses beside its pods, as `{"cpu": "500m"}`; None: its usage is not measured.
    """

    words: ClassVar[FieldWords] = {
        "name": (gettext_noop("Name"), gettext_noop("Of the node; equal nodes get numbers behind it.")),
        "count": (gettext_noop("Number of equal nodes"), gettext_noop("Empty: one, without a number.")),
        "allocatable": (
            gettext_noop("Resources of a node"),
            gettext_noop("One name=value per line. For example: cpu=64, memory=512Gi. Cards add theirs."),
        ),
        "labels": (
            gettext_noop("Labels"),
            gettext_noop("One name=value per line. For example the rack: example.com/rack=r1."),
        ),
        "annotations": (gettext_noop("Annotations"), gettext_noop("One name=value per line.")),
        "taints": (gettext_noop("Taints"), ""),
        "images": (gettext_noop("Images"), gettext_noop("Already on the node, with their sizes: tool:1=5Gi.")),
        "cards": (gettext_noop("Cards"), gettext_noop("The GPUs or other cards of a node.")),
        "usage": (
            gettext_noop("Usage beside pods"),
            gettext_noop("One name=value per line. Empty: the usage of the node is not measured."),
        ),
        "numa": (gettext_noop("NUMA cells"), ""),
    }
    main: ClassVar[tuple[str, ...]] = ("name", "count", "allocatable", "labels", "cards")

    name: str = Field(min_length=1, max_length=200)
    count: int | None = Field(default=None, ge=1, le=100_000)
    allocatable: Quantities
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    taints: Annotated[tuple[TaintConfig, ...], Field(max_length=64)] = ()
    images: Annotated[Quantities, Field(max_length=100)] = {}
    cards: Cards = ()
    usage: Quantities | None = None
    numa: NumaConfig | None = None

    def nodes(self) -> Iterator[NodeInfo]:
        """The nodes of this entry."""
        names = [self.name] if self.count is None else [f"{self.name}-{number}" for number in range(self.count)]
        cards = described(self.cards)
        allocatable = Resources({**amounts(cards), **Resources.parse({"pods": PODS, **self.allocatable})})
        taints = tuple(Taint(one.key, one.value, one.effect.value) for one in self.taints)
        images = {name: int(parse_quantity("memory", size)) for name, size in self.images.items()}
        notes = {**annotations(cards), **self.annotations}
        models = product_labels(cards)
        numa = self.numa.topology() if self.numa else None
        for name in names:
            labels = {"kubernetes.io/hostname": name, **models, **self.labels}
            yield NodeInfo(
                name, allocatable, labels, taints=taints, annotations=notes, images=images, cards=cards, numa=numa
            )


Amount = Annotated[int, Field(ge=0, le=1_000_000)] | Annotated[str, Field(pattern=r"^(100|[0-9]{1,2})%$")]


class DisruptionBudgetConfig(BackendConfig):
    """A disruption budget for pods by the labels of their tasks. `tenant`: only for this one; empty for all.

    Exactly one of the amounts is set: a number of pods, or a percentage of those selected.
    """

    words: ClassVar[FieldWords] = {
        "name": (gettext_noop("Name"), ""),
        "tenant": (gettext_noop("Tenant"), gettext_noop("Its short name. Empty: for all tenants.")),
        "selector": (gettext_noop("Selector"), gettext_noop("Labels of pods, as JSON.")),
        "min_available": (gettext_noop("Minimum available"), gettext_noop("A number of pods, or a percentage.")),
        "max_unavailable": (gettext_noop("Maximum unavailable"), gettext_noop("A number of pods, or a percentage.")),
    }

    name: Label
    tenant: Annotated[str, Field(max_length=63)] = ""
    selector: LabelSelector = LabelSelector()
    min_available: Amount | None = None
    max_unavailable: Amount | None = None

    @model_validator(mode="after")
    def _has_one_amount(self) -> "DisruptionBudgetConfig":
        if (self.min_available is None) == (self.max_unavailable is None):
            raise ValueError(translate("Set exactly one of min_available and max_unavailable."))
        return self

    def facts(self) -> ObjectFacts:
        """As an object of a cluster."""
        amounts = {"minAvailable": self.min_available, "maxUnavailable": self.max_unavailable}
        spec = {
            "selector": self.selector.model_dump(mode="json", by_alias=True, exclude_defaults=True),
            **{name: amount for name, amount in amounts.items() if amount is not None},
        }
        body = {"metadata": {"namespace": self.tenant, "name": self.name}, "spec": spec}
        return ObjectFacts.of(ObjectKind.DISRUPTION_BUDGET, self.name, body)


def _distinct_names(budgets: tuple[DisruptionBudgetConfig, ...]) -> tuple[DisruptionBudgetConfig, ...]:
    if len({one.name for one in budgets}) < len(budgets):
        raise ValueError(translate("Another disruption budget has this name."))
    return budgets


class SimulatedConfig(ClusterConfig):
    """The whole cluster. `speed`: simulated seconds per real second. `pod_usage`: the part of its requests that a
    running pod uses. `devices`: Kubernetes objects of the kinds ResourceSlice, DeviceClass, ResourceClaim and
    ResourceClaimTemplate; jobs of all tenants may name the claims. `disruption_budgets`: for policies with the plugin
    pdb. `runtime_classes`: their overhead per pod, by name.
    """

    words: ClassVar[FieldWords] = {
        **ClusterConfig.words,
        "nodes": (gettext_noop("Nodes"), gettext_noop("Groups of equal simulated nodes.")),
        "devices": (
            gettext_noop("Device objects"),
            gettext_noop("A JSON list of ResourceSlices, DeviceClasses, ResourceClaims and templates."),
        ),
        "runtime_classes": (
            gettext_noop("Runtime classes"),
            gettext_noop('Their overhead per pod, by name, as JSON. For example: {"kata": {"cpu": "250m"}}.'),
        ),
        "disruption_budgets": (gettext_noop("Disruption budgets"), ""),
        "seed": (gettext_noop("Seed"), gettext_noop("Of the random run times.")),
        "speed": (gettext_noop("Speed"), gettext_noop("Simulated seconds per second.")),
        "prepare_seconds": (gettext_noop("Time to prepare a pod"), ""),
        "run_seconds": (gettext_noop("Run time of a pod"), ""),
        "stop_seconds": (gettext_noop("Time to stop a pod (seconds)"), ""),
        "failure_rate": (gettext_noop("Failure rate"), gettext_noop("The part of pods that fail, from 0 to 1.")),
        "pod_usage": (
            gettext_noop("Usage of pods"),
            gettext_noop("The part of its requests that a running pod uses; 1 is all."),
        ),
    }
    main: ClassVar[tuple[str, ...]] = ("nodes", "speed", "run_seconds", "failure_rate")

    nodes: tuple[SimulatedNodeConfig, ...] = ()
    devices: Annotated[tuple[DeviceObject, ...], Field(max_length=MAX_OBJECTS)] = ()
    runtime_classes: Annotated[dict[ObjectName, Quantities], Field(max_length=100)] = {}
    disruption_budgets: Annotated[
        tuple[DisruptionBudgetConfig, ...], Field(max_length=1000), AfterValidator(_distinct_names)
    ] = ()
    seed: int = 0
    speed: float = Field(default=60.0, gt=0, le=1e6)
    prepare_seconds: SecondsRange = SecondsRange(min=2, max=10)
    run_seconds: SecondsRange = SecondsRange(min=60, max=600)
    stop_seconds: Seconds = 2.0
    failure_rate: float = Field(default=0.0, ge=0, le=1)
    pod_usage: float = Field(default=1.0, ge=0, le=100)
