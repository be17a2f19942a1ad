"""Parse the configuration of a cluster, as written by a person."""

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from hekla.domain.errors import Invalid, Problem
from hekla.domain.model_errors import explain
from hekla.domain.resources import Resources


class BackendConfig(BaseModel):
    """Base of configurations: frozen, without unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


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
