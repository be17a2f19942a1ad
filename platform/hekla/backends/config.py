"""Parse the configuration of a cluster, as written by a person."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from hekla.domain.errors import Invalid, Problem
from hekla.domain.model_errors import explain
from hekla.domain.placement import LabelKey
from hekla.domain.resources import Resources
from hekla.domain.translation import gettext_noop, translate


def _distinct(names: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(names)) < len(names):
        raise ValueError(translate("Each label may occur only once."))
    return names


FieldWords = Mapping[str, tuple[str, str]]
"""By field: its label and one line of help, in English, marked for translation."""


class BackendConfig(BaseModel):
    """Base of configurations: frozen, without unknown keys.

    The form of a cluster is made from it. `words`: the labels of fields; a field without one has its `title` and
    `description`, or its name. `main`: the fields that the form always shows, the others on demand; empty: all.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    words: ClassVar[FieldWords] = {}
    main: ClassVar[tuple[str, ...]] = ()


class ClusterConfig(BackendConfig):
    """Base of whole configurations. `topology_labels`: the node labels that tell which nodes are close in the network,
    the widest first, for example `["topology.kubernetes.io/zone", "example.com/rack"]` (`hekla.scheduling.topology`).
    """

    words: ClassVar[FieldWords] = {
        "topology_labels": (
            gettext_noop("Topology labels"),
            gettext_noop("Labels of nodes that tell which are close in the network, one per line, the widest first."),
        ),
    }

    topology_labels: Annotated[tuple[LabelKey, ...], Field(max_length=8), AfterValidator(_distinct)] = ()


AnyConfig = TypeVar("AnyConfig", bound=BackendConfig)


def _parsed(quantities: dict[str, str | int | float]) -> dict[str, str | int | float]:
    Resources.parse(quantities)
    return quantities


Quantities = Annotated[dict[str, str | int | float], AfterValidator(_parsed)]
"""Amounts as Kubernetes writes them: `{"cpu": "4", "memory": "8Gi"}`."""


def parse_config(model: type[AnyConfig], config: Mapping[str, Any]) -> AnyConfig:
    """The configuration, checked. Raises Invalid with every problem and its path."""
    try:
        return model.model_validate(dict(config))
    except ValidationError as error:
        problems = explain(error, model)
        raise Invalid([Problem(f"config.{problem.path}", problem.message) for problem in problems]) from error
