"""Evict whom plugins want gone from where they are, for nobody in particular (`volcano-spec` §4)."""

from collections.abc import Mapping

from hekla.engine.policy import Argument
from hekla.engine.session import Session
from hekla.engine.statement import Statement

NAME = "shuffle"


def execute(session: Session, _arguments: Mapping[str, Argument]) -> None:
    """All of them at once; where they go next is decided in a later cycle."""
    statement = Statement(session)
    for member, plugins in session.victim_tasks():
        statement.evict(member, NAME, "", plugins)
    statement.commit()
