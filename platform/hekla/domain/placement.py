"""Where the pods of a task may run besides its node selector: Kubernetes' fields, with Kubernetes' rules.

Documents of jobs use snake_case. `pod_fields` has Kubernetes' own form, which manifests, pods and the engine share. Pod
selectors select pods of the own tenant only, so terms for other namespaces do not exist here.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, AliasGenerator, BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from hekla.domain.errors import Problem
from hekla.domain.field_types import SchemaKeywords, StrictInteger
from hekla.domain.taints import TaintEffect
from hekla.domain.translation import translate
from hekla.domain.validation import InconsistentFields, join, quote

if TYPE_CHECKING:
    from hekla.domain.task_spec import TaskSpec

MAX_TOLERATIONS = MAX_REQUIREMENTS = MAX_LABELS = 32
MAX_TERMS = MAX_SPREAD_CONSTRAINTS = 16
MAX_VALUES = 64
MAX_AFFINITY_BYTES = 64 * 1024
RESERVED_LABELS = ("hekla.dev/", "app.kubernetes.io/")
"""Prefixes of labels by which Hekla, its network policies and its installation find pods."""
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_MAX_NAME, _MAX_PREFIX, _MOST = 63, 253, 2**31 - 1
_MAX_KEY = _MAX_PREFIX + 1 + _MAX_NAME
_SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_WORD = r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
_KEY = re.compile(rf"({_SUBDOMAIN}/)?{_WORD}")
_VALUE = re.compile(rf"({_WORD})?")
_NODE_NAME = re.compile(_SUBDOMAIN)
_NUMBER = re.compile(r"\d{1,18}", re.ASCII)


def _label_key(text: str) -> str:
    prefix, _, name = text.rpartition("/")
    if not _KEY.fullmatch(text) or len(name) > _MAX_NAME or len(prefix) > _MAX_PREFIX:
        raise ValueError(
            translate("{text} is not a valid label name, for example zone or example.com/zone.", text=quote(text))
        )
    return text


def _label_key_or_nothing(text: str) -> str:
    return text and _label_key(text)


def _label_value(text: str) -> str:
    if not _VALUE.fullmatch(text):
        raise ValueError(
            translate(
                "{text} is not a valid label value. Use letters, digits, “-”, “_” and “.”. The first and last "
                "character must be a letter or digit.",
                text=quote(text),
            )
        )
    return text


def _node_name(text: str) -> str:
    if not _NODE_NAME.fullmatch(text):
        raise ValueError(translate("{text} is not a valid node name.", text=quote(text)))
    return text


def is_reserved(label: str) -> bool:
    """Whether tasks and nodes cannot have this label, because Hekla uses it."""
    return label.startswith(RESERVED_LABELS)


def _no_reserved_names(labels: dict[str, str]) -> dict[str, str]:
    message = translate("Names that begin with {prefixes} are reserved.", prefixes=", ".join(RESERVED_LABELS))
    _raise_any(Problem(name, message) for name in labels if is_reserved(name))
    return labels


def _raise_any(problems: Iterable[Problem]) -> None:
    if found := list(problems):
        raise InconsistentFields(found)


LabelKey = Annotated[
    str,
    Field(min_length=1, max_length=_MAX_KEY),
    AfterValidator(_label_key),
    SchemaKeywords({"pattern": f"^{_KEY.pattern}$"}),
]
OptionalLabelKey = Annotated[
    str,
    Field(max_length=_MAX_KEY),
    AfterValidator(_label_key_or_nothing),
    SchemaKeywords({"pattern": f"^({_KEY.pattern})?$"}),
]
LabelValue = Annotated[
    str, Field(max_length=_MAX_NAME), AfterValidator(_label_value), SchemaKeywords({"pattern": f"^{_VALUE.pattern}$"})
]
Labels = Annotated[dict[LabelKey, LabelValue], Field(max_length=MAX_LABELS)]
TaskLabels = Annotated[Labels, AfterValidator(_no_reserved_names)]
Values = Annotated[tuple[LabelValue, ...], Field(max_length=MAX_VALUES)]
Keys = Annotated[tuple[LabelKey, ...], Field(max_length=MAX_REQUIREMENTS)]
Weight = Annotated[StrictInteger, Field(ge=1, le=100)]
Count = Annotated[StrictInteger, Field(ge=1, le=_MOST)]


class _Fields(BaseModel):
    """An object of Kubernetes. Dumped by alias, it has Kubernetes' spelling."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=AliasGenerator(serialization_alias=to_camel))


class TolerationOperator(StrEnum):
    """Whether a toleration matches the value of a taint, or any value."""

    EQUAL = "Equal"
    EXISTS = "Exists"


class TolerationSpec(_Fields):
    """Taints that do not keep pods off a node. `effect` None: all effects. An empty key: all taints.

    `toleration_seconds`: how long a pod stays on a node that gets a NoExecute taint; None: as long as it runs.
    """

    key: OptionalLabelKey = ""
    operator: TolerationOperator = TolerationOperator.EQUAL
    value: LabelValue = ""
    effect: TaintEffect | None = None
    toleration_seconds: Annotated[StrictInteger, Field(ge=0, le=10 * 365 * 86_400)] | None = None

    @model_validator(mode="after")
    def _fields_agree(self) -> "TolerationSpec":
        is_equal = self.operator is TolerationOperator.EQUAL
        if is_equal and not self.key:
            message = translate("Required. Only the operator Exists can be without a key: it tolerates every taint.")
            raise InconsistentFields([Problem("key", message)])
        if self.value and not is_equal:
            message = translate("The operator Exists takes no value: it matches every value.")
            raise InconsistentFields([Problem("value", message)])
        if self.toleration_seconds is not None and self.effect is not TaintEffect.NO_EXECUTE:
            message = translate("Only for the effect NoExecute: other taints do not evict pods.")
            raise InconsistentFields([Problem("toleration_seconds", message)])
        return self


class LabelOperator(StrEnum):
    """How a selector of pods compares a label."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"


class NodeOperator(StrEnum):
    """How node affinity compares a label of a node. Gt and Lt compare integers."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GT = "Gt"
    LT = "Lt"


def _check_values(operator: str, values: tuple[str, ...]) -> None:
    """Raise InconsistentFields if the number or the form of the values does not fit the operator."""
    message = ""
    if operator in ("In", "NotIn") and not values:
        message = translate("The operator {operator} needs at least one value.", operator=operator)
    if operator in ("Exists", "DoesNotExist") and values:
        message = translate("The operator {operator} takes no values.", operator=operator)
    if operator in ("Gt", "Lt") and not (len(values) == 1 and _NUMBER.fullmatch(values[0])):
        message = translate("The operator {operator} needs exactly one value, an integer in quotes.", operator=operator)
    _raise_any([Problem("values", message)] if message else [])


class LabelRequirement(_Fields):
    """A requirement on a label of pods."""

    key: LabelKey
    operator: LabelOperator
    values: Values = ()

    @model_validator(mode="after")
    def _values_fit(self) -> "LabelRequirement":
        _check_values(self.operator, self.values)
        return self


class NodeRequirement(_Fields):
    """A requirement on a label of nodes."""

    key: LabelKey
    operator: NodeOperator
    values: Values = ()

    @model_validator(mode="after")
    def _values_fit(self) -> "NodeRequirement":
        _check_values(self.operator, self.values)
        return self


class NodeField(StrEnum):
    """The only field of nodes that affinity can name."""

    NAME = "metadata.name"


class NodeFieldOperator(StrEnum):
    """How node affinity compares the name of a node."""

    IN = "In"
    NOT_IN = "NotIn"


class NodeFieldRequirement(_Fields):
    """A requirement on the name of nodes."""

    key: NodeField
    operator: NodeFieldOperator
    values: Annotated[
        tuple[Annotated[str, Field(max_length=_MAX_PREFIX), AfterValidator(_node_name)], ...],
        Field(min_length=1, max_length=1),
    ]


class NodeTermSpec(_Fields):
    """All requirements must hold. A term without requirements matches no node."""

    match_expressions: Annotated[tuple[NodeRequirement, ...], Field(max_length=MAX_REQUIREMENTS)] = ()
    match_fields: Annotated[tuple[NodeFieldRequirement, ...], Field(max_length=MAX_REQUIREMENTS)] = ()


class NodeTerms(_Fields):
    """Nodes that match any of the terms."""

    node_selector_terms: Annotated[tuple[NodeTermSpec, ...], Field(min_length=1, max_length=MAX_TERMS)]


class PreferredNodeTerm(_Fields):
    """Nodes to prefer; the weights of all matching terms are added."""

    weight: Weight
    preference: NodeTermSpec


class NodeAffinity(_Fields):
    """Nodes that pods require, and nodes that they prefer."""

    required_during_scheduling_ignored_during_execution: NodeTerms | None = None
    preferred_during_scheduling_ignored_during_execution: Annotated[
        tuple[PreferredNodeTerm, ...], Field(max_length=MAX_TERMS)
    ] = ()


class LabelSelector(_Fields):
    """Pods with all of these labels that meet all requirements. An empty selector selects every pod of the tenant."""

    match_labels: Labels = {}
    match_expressions: Annotated[tuple[LabelRequirement, ...], Field(max_length=MAX_REQUIREMENTS)] = ()

    def label_names(self) -> frozenset[str]:
        """The labels that it names."""
        return frozenset((*self.match_labels, *(one.key for one in self.match_expressions)))


def _key_problems(selector: LabelSelector | None, field: str, keys: Keys) -> Iterator[Problem]:
    """Problems of keys whose values a pod takes from its own labels."""
    if keys and selector is None:
        yield Problem(field, translate("Only together with a label selector."))
    for place, key in enumerate(keys):
        if selector and key in selector.label_names():
            yield Problem(join(field, place), translate("{name} is already in the label selector.", name=quote(key)))


class PodAffinityTermSpec(_Fields):
    """Pods of the own tenant, and the node label whose value says which nodes are near each other.

    Without a selector it selects no pods. `match_label_keys`: only pods with the same values of these labels;
    `mismatch_label_keys`: only pods with other values.
    """

    label_selector: LabelSelector | None = None
    match_label_keys: Keys = ()
    mismatch_label_keys: Keys = ()
    topology_key: LabelKey

    @model_validator(mode="after")
    def _keys_agree(self) -> "PodAffinityTermSpec":
        fields = {"match_label_keys": self.match_label_keys, "mismatch_label_keys": self.mismatch_label_keys}
        problems = [one for field, keys in fields.items() for one in _key_problems(self.label_selector, field, keys)]
        message = translate("A label cannot be among both the matching and the mismatching keys.")
        both = set(self.match_label_keys) & set(self.mismatch_label_keys)
        _raise_any([*problems, *([Problem("mismatch_label_keys", message)] if both else [])])
        return self


class PreferredPodTerm(_Fields):
    """Pods to be near to, or away from, if possible."""

    weight: Weight
    pod_affinity_term: PodAffinityTermSpec


class PodAffinity(_Fields):
    """Pods near which pods must be, and should be. For anti-affinity: must not be, and should not be."""

    required_during_scheduling_ignored_during_execution: Annotated[
        tuple[PodAffinityTermSpec, ...], Field(max_length=MAX_TERMS)
    ] = ()
    preferred_during_scheduling_ignored_during_execution: Annotated[
        tuple[PreferredPodTerm, ...], Field(max_length=MAX_TERMS)
    ] = ()


class Affinity(_Fields):
    """The nodes, and the pods around, that pods of a task require or prefer."""

    node_affinity: NodeAffinity = NodeAffinity()
    pod_affinity: PodAffinity = PodAffinity()
    pod_anti_affinity: PodAffinity = PodAffinity()

    @model_validator(mode="after")
    def _is_small(self) -> "Affinity":
        if len(self.model_dump_json(exclude_defaults=True)) > MAX_AFFINITY_BYTES:
            message = translate("The affinity exceeds {kib} KiB.", kib=MAX_AFFINITY_BYTES // 1024)
            raise InconsistentFields([Problem("", message)])
        return self

    @property
    def needs_other_pods(self) -> bool:
        """Whether pods can only run near certain pods."""
        return bool(self.pod_affinity.required_during_scheduling_ignored_during_execution)


class UnsatisfiableAction(StrEnum):
    """What happens to a pod if no node keeps the spread even."""

    DO_NOT_SCHEDULE = "DoNotSchedule"
    SCHEDULE_ANYWAY = "ScheduleAnyway"


class InclusionPolicy(StrEnum):
    """Whether only nodes count that the pod's node affinity, or its tolerations, allow."""

    HONOR = "Honor"
    IGNORE = "Ignore"


class TopologySpreadSpec(_Fields):
    """The numbers of selected pods in the domains of `topology_key` differ by at most `max_skew`.

    `min_domains`: with fewer domains than this, the smallest number counts as 0.
    """

    max_skew: Count
    topology_key: LabelKey
    when_unsatisfiable: UnsatisfiableAction
    label_selector: LabelSelector | None = None
    match_label_keys: Keys = ()
    min_domains: Count | None = None
    node_affinity_policy: InclusionPolicy = InclusionPolicy.HONOR
    node_taints_policy: InclusionPolicy = InclusionPolicy.IGNORE

    @model_validator(mode="after")
    def _fields_agree(self) -> "TopologySpreadSpec":
        problems = list(_key_problems(self.label_selector, "match_label_keys", self.match_label_keys))
        if self.min_domains is not None and self.when_unsatisfiable is not UnsatisfiableAction.DO_NOT_SCHEDULE:
            problems.append(Problem("min_domains", translate("Only together with DoNotSchedule.")))
        _raise_any(problems)
        return self


def _are_distinct(constraints: tuple[TopologySpreadSpec, ...]) -> tuple[TopologySpreadSpec, ...]:
    names = [(one.topology_key, one.when_unsatisfiable) for one in constraints]
    message = translate("Another constraint has the same topology key and the same action if it cannot be met.")
    _raise_any(Problem(str(place), message) for place, name in enumerate(names) if name in names[:place])
    return constraints


Tolerations = Annotated[tuple[TolerationSpec, ...], Field(max_length=MAX_TOLERATIONS)]
SpreadConstraints = Annotated[
    tuple[TopologySpreadSpec, ...], Field(max_length=MAX_SPREAD_CONSTRAINTS), AfterValidator(_are_distinct)
]
NO_AFFINITY = Affinity()


def pod_fields(task: "TaskSpec") -> dict[str, Any]:
    """The node selector and the fields above as in the spec of a Kubernetes pod; empty ones are left out."""
    fields = {
        "nodeSelector": dict(task.node_selector),
        "tolerations": [_kubernetes_form(one) for one in task.tolerations],
        "affinity": {} if task.affinity == NO_AFFINITY else _kubernetes_form(task.affinity),
        "topologySpreadConstraints": [_kubernetes_form(one) for one in task.topology_spread_constraints],
    }
    return {name: value for name, value in fields.items() if value}


def without_labels(fields: Mapping[str, Any], labels: Collection[str]) -> Mapping[str, Any]:
    """The same fields of a pod whose node has these labels for Hekla's scheduler only: without what requires them.

    Its kubelet does not know these labels, and would refuse the pod. Required terms of affinity are left out together:
    the scheduler has chosen the node by one of them.
    """
    selector = {key: value for key, value in fields.get("nodeSelector", {}).items() if key not in labels}
    affinity = dict(fields.get("affinity", {}))
    nodes = dict(affinity.get("nodeAffinity", {}))
    terms = nodes.get(_REQUIRED, {}).get("nodeSelectorTerms", ())
    if any(one["key"] in labels for term in terms for one in term.get("matchExpressions", ())):
        del nodes[_REQUIRED]
        affinity["nodeAffinity"] = nodes
    changed = {"nodeSelector": selector, "affinity": {name: one for name, one in affinity.items() if one}}
    return {name: value for name, value in {**fields, **changed}.items() if value}


def _kubernetes_form(model: BaseModel) -> dict[str, Any]:
    return model.model_dump(mode="json", by_alias=True, exclude_defaults=True)
