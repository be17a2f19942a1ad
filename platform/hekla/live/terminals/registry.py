"""The open terminals of this process: one of each person in each pod, and not too many."""

from collections.abc import Sequence

from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.jobs.models import Pod
from hekla.apps.tenancy.selectors import RoleSnapshot
from hekla.backends.base import Exec
from hekla.domain.errors import Refused
from hekla.domain.events import TerminalEnd
from hekla.live.logs import key_of
from hekla.live.terminals import claims
from hekla.live.terminals.notices import IdleNotices
from hekla.live.terminals.terminal import SHELL, Terminal, TerminalPage
from hekla.live.threads import per_loop

MAX_OF_PERSON, MAX_OF_POD, MAX_OPEN = 8, 8, 400
MAX_PAGES = 16
"""At most so many pages show one terminal."""
OWNER_PAGES = 4
"""Of them, how many are left to its owner, whom guests with many pages would keep out."""


class Elsewhere(Exception):
    """Another process of the console runs this terminal."""


class Terminals:
    """Those of one event loop."""

    def __init__(self) -> None:
        self._open: dict[tuple[int, int], Terminal] = {}
        self._notices = IdleNotices(lambda: self._open)

    def of_pod(self, pod_id: int) -> Sequence[Terminal]:
        """The terminals in this pod."""
        return [terminal for (pod, _person), terminal in self._open.items() if pod == pod_id]

    async def find(self, pod_id: int, terminal: str) -> Terminal:
        """The terminal with this id in the pod. Raises Refused if it has ended, Elsewhere."""
        for found in self.of_pod(pod_id):
            if found.id.hex == terminal:
                return found
        if await claims.is_elsewhere(terminal):
            raise Elsewhere
        raise Refused(_("This terminal has ended."))

    async def own(self, pod: Pod, page: TerminalPage, commands: Exec, roles: RoleSnapshot | None) -> Terminal:
        """The terminal of this page's person in the pod; a new one if there is none.

        Raises Refused if there are too many, BackendError if the pod does not run it, Elsewhere.
        """
        key = (pod.pk, page.user.pk)
        if found := self._open.get(key):
            await found.opened()
            return found
        self._require_room(pod, page.user)
        made = self._open[key] = Terminal(pod, page, roles, on_end=lambda: self._forget(key))
        try:
            if not await claims.take(*key, made.id):
                raise Elsewhere
        except BaseException:  # also a cancelled page: others may wait for this terminal
            made.refuse(Elsewhere())
            raise
        await made.open(commands.run(key_of(pod), SHELL, in_terminal=True))
        self._notices.begin()
        return made

    async def stop_all(self) -> None:
        """End all terminals because the console stops, and wait until that is recorded."""
        stopped = [*self._open.values()]
        for terminal in stopped:
            terminal.stop(TerminalEnd.STOPPED)
        for terminal in stopped:
            await terminal.closed()

    def _forget(self, key: tuple[int, int]) -> None:
        self._open.pop(key, None)

    def _require_room(self, pod: Pod, user: User) -> None:
        if sum(1 for _pod, person in self._open if person == user.pk) >= MAX_OF_PERSON:
            raise Refused(
                _("You have %(n)s open terminals, which is the most. End one with “exit”, then try again.")
                % {"n": MAX_OF_PERSON}
            )
        if len(self._open) >= MAX_OPEN:
            raise Refused(_("The console has too many open terminals now. Try again later."))
        if len(self.of_pod(pod.pk)) >= MAX_OF_POD:
            raise Refused(
                _("This pod has %(n)s open terminals, which is the most. Wait until one ends, or watch one of them.")
                % {"n": MAX_OF_POD}
            )


def require_place(terminal: Terminal, user: User) -> None:
    """Raises Refused if too many pages show the terminal for one more of this person."""
    most = MAX_PAGES if user.pk == terminal.owner.pk else max(1, MAX_PAGES - OWNER_PAGES)
    if len(terminal.pages) >= most:
        raise Refused(_("%(n)s pages show this terminal, which is the most. Close one, then try again.") % {"n": most})


terminals = per_loop(Terminals)
