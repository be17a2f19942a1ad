"""Shuffle: evict the pods that plugins name, for example to rebalance (`volcano-spec` §4)."""

from collections.abc import Mapping

from hekla.engine.inputs import Need
from hekla.engine.policy import Argument
from hekla.engine.session import Session
from hekla.engine.statement import Statement

NAME = "shuffle"

NEEDS: tuple[Need, ...] = ()


def execute(session: Session, _arguments: Mapping[str, Argument]) -> None:
    """Evict all pods that plugins name; a later cycle places them again."""
    statement = Statement(session)
    for pod, plugins in session.victim_pods():
        statement.evict(pod, NAME, "", plugins)
    statement.commit()
