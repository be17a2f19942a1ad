"""What a plugin notes about the rounds in which it divides the cluster among queues, for people who ask."""

from collections.abc import Mapping
from dataclasses import dataclass

from hekla.engine.columns import Vector

MAX_ROUNDS = 32
"""More rounds are not noted. Each round but the last settles a queue, and the first ones divide nearly everything."""


@dataclass(frozen=True, slots=True)
class ShareRound:
    """One round over the queues that lacked something. `left`: at its start; `weights`: of these queues together.

    `offered`: to each of them, with what it had before; `deserved`: what it got of that.
    """

    left: Vector
    weights: float
    offered: Mapping[str, Vector]
    deserved: Mapping[str, Vector]


class ShareNotes:
    """The rounds of one session. Sessions for queries have these notes, those of cycles do not."""

    def __init__(self) -> None:
        self.rounds: list[ShareRound] = []

    def add(self, made: ShareRound) -> None:
        """Note a round, if there are not too many."""
        if len(self.rounds) < MAX_ROUNDS:
            self.rounds.append(made)
