"""The configuration of a simulated cluster."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from hekla.backends.base import NodeInfo
from hekla.backends.config import BackendConfig, Quantities
from hekla.domain.resources import Resources

PODS = 110
Seconds = Annotated[float, Field(ge=0, le=1e9)]


class SecondsRange(BackendConfig):
    """A range of times with a uniform distribution, in simulated seconds."""

    min: Seconds
    max: Seconds


class SimulatedNodeConfig(BackendConfig):
    """One node, or `count` equal nodes, whose names get a number."""

    name: str = Field(min_length=1, max_length=200)
    count: int | None = Field(default=None, ge=1, le=100_000)
    allocatable: Quantities
    labels: dict[str, str] = {}

    def nodes(self) -> Iterator[NodeInfo]:
        """The nodes of this entry."""
        names = [self.name] if self.count is None else [f"{self.name}-{number}" for number in range(self.count)]
        allocatable = Resources.parse({"pods": PODS, **self.allocatable})
        for name in names:
            yield NodeInfo(name, allocatable, {"kubernetes.io/hostname": name, **self.labels})


class SimulatedConfig(BackendConfig):
    """The whole cluster. `speed`: simulated seconds per real second."""

    nodes: tuple[SimulatedNodeConfig, ...] = ()
    seed: int = 0
    speed: float = Field(default=60.0, gt=0, le=1e6)
    prepare_seconds: SecondsRange = SecondsRange(min=2, max=10)
    run_seconds: SecondsRange = SecondsRange(min=60, max=600)
    stop_seconds: Seconds = 2.0
    failure_rate: float = Field(default=0.0, ge=0, le=1)
