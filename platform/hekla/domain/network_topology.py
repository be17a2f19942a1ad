"""How close together in the network the pods of a job must be: Volcano's `networkTopology`.

Nodes that are close form a hypernode; hypernodes of a higher tier hold those of lower ones, up to the whole cluster.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

from pydantic import AliasGenerator, BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from hekla.domain.errors import Problem
from hekla.domain.field_types import StrictInteger, Text
from hekla.domain.translation import translate
from hekla.domain.validation import InconsistentFields

MAX_TIER = 1_000


@dataclass(frozen=True, slots=True)
class HyperNodeLevel:
    """A hypernode that holds a node, as its backend reports it."""

    name: str
    tier: int
    tier_name: str = ""


class TopologyMode(StrEnum):
    """Whether the pods wait until they fit into one hypernode, or are only as close as possible."""

    HARD = "hard"
    SOFT = "soft"


class NetworkTopologySpec(BaseModel):
    """The hypernode that must hold all pods has at most this tier, given by number or by name; neither: any tier.

    A lower tier is closer. Names of tiers are those of the node labels or HyperNode objects that define the hypernodes.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=AliasGenerator(serialization_alias=to_camel))

    mode: TopologyMode = TopologyMode.HARD
    highest_tier_allowed: Annotated[StrictInteger, Field(ge=0, le=MAX_TIER)] | None = None
    highest_tier_name: Annotated[Text, Field(max_length=317)] = ""

    @model_validator(mode="after")
    def _fields_agree(self) -> "NetworkTopologySpec":
        if self.highest_tier_name and self.highest_tier_allowed is not None:
            message = translate("Name the tier, or give its number in highest_tier_allowed, not both.")
            raise InconsistentFields([Problem("highest_tier_name", message)])
        return self

    def kubernetes_form(self) -> dict[str, Any]:
        """As in Volcano's objects."""
        return {"mode": str(self.mode), **self.model_dump(by_alias=True, exclude={"mode"}, exclude_defaults=True)}

    def remarks(self) -> list[Problem]:
        """Fields without effect."""
        if self.mode is TopologyMode.HARD:
            return []
        message = translate("Without effect: in the mode soft, every tier is allowed.")
        return [Problem(name, message) for name in self.model_dump(exclude={"mode"}, exclude_defaults=True)]
