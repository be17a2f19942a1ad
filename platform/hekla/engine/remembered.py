"""Nodes that refused one task of a role, remembered for the later ones of a turn (`volcano-spec` §3.3).

What refused one task may welcome the next: pods come to be near, a spread evens out. Volcano does not look again
(unless `predicateErrorCacheEnable: false`); only a policy that follows Volcano does so too.
"""

from collections.abc import Mapping

from hekla.engine.columns import Mask
from hekla.engine.gangs import Gang, Member
from hekla.engine.policy import Argument
from hekla.engine.session import Session


class Remembered:
    """The refusals of one turn of a gang."""

    def __init__(self, session: Session, gang: Gang, arguments: Mapping[str, Argument]) -> None:
        self._session, self._gang = session, gang
        self._is_on = session.policy.follows_volcano and arguments.get("predicateErrorCacheEnable") is not False
        self._matters: dict[str, bool] = {}
        self._open: dict[str, Mask] = {}

    def open_rows(self, member: Member) -> Mask | None:
        """The rows that refused no task of its role so far. None: the present refusals say it all."""
        role = member.task.role
        if not self._is_on or not role or not self._may_differ(member):
            return None
        welcome = self._session.places(member).welcoming()
        self._open[role] = welcome & self._open.get(role, welcome)
        return self._open[role]

    def _may_differ(self, member: Member) -> bool:
        """Whether refusals can be taken back: by pods that come, or because the role's tasks are not alike."""
        role = member.task.role
        if role not in self._matters:
            alike = {one.shape for one in self._gang.members if one.task.role == role}
            self._matters[role] = len(alike) > 1 or self._session.places(member).depends_on_pods
        return self._matters[role]
