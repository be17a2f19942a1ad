"""The figures of all queues at the start of a session, and how they follow what it does."""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from hekla.domain.resources import Resources
from hekla.engine import accounts, queue_tree
from hekla.engine.columns import EPSILON, Mask, Vector, share
from hekla.engine.gangs import Member
from hekla.engine.model import Queue
from hekla.engine.plugins.capacity.devices import Demand
from hekla.engine.queue_tree import ROOT, QueueTree
from hekla.engine.session import Session, infinite_where_absent

HAS_CHILDREN = "queue_has_children"
NOT_READY = "queue_tree_not_ready"


@dataclass(eq=False)
class Account(accounts.Account):
    """A queue's figures and its place in the tree.

    `counted`: the dimensions in which it deserves something; `owned`: the same without pods.
    `line` leads from itself up to the root; in a flat cluster it is alone in it. `problem`: why it takes nothing in.
    """

    owned: Mask
    counted: Mask
    line: "tuple[Account, ...]" = ()
    is_inner: bool = False
    problem: str = ""
    _share: float | None = None

    @property
    def above(self) -> tuple[str, ...]:
        return tuple(account.queue.name for account in self.line[1:])

    @property
    def owns_any(self) -> bool:
        """Whether it deserves anything at all."""
        return bool(self.owned.any())

    @property
    def share(self) -> float:
        """How much of what it deserves it holds, where that is most; who deserves nothing counts as holding all."""
        if self._share is None:
            self._share = self.share_with(np.zeros_like(self.allocated))
        return self._share

    def share_with(self, more: Vector) -> float:
        """The same if it held so much more (or, below zero, less)."""
        counted = self.counted
        return share((self.allocated + more)[counted], self.deserved[counted]) if self.owns_any else 1.0

    def hold(self, amount: Vector, *, weigh: bool) -> None:
        """It holds so much more; without `weigh` its share stays what it was."""
        self._share = None if weigh else self.share
        self.allocated += amount


Books = dict[str, Account]


def follow(books: Books, member: Member, amount: Vector, *, weigh_all: bool) -> None:
    """A task was given a place for so much (or lost it).

    Volcano weighs only the queue itself again: for the rest of the session the queues above it are compared by what
    they held when it began, and one branch may take all turns. Its behaviour is followed without `weigh_all`.
    """
    line = books[member.job.job.queue].line
    for account in line:
        account.hold(amount, weigh=weigh_all or account is line[0])


def of_session(session: Session, demand: Demand, *, is_tree: bool) -> Books:
    """The account of each queue."""
    books = _of_tree(session) if is_tree else _of_flat(session)
    for name, sums in session.sums.items():
        if name in session.queues:
            accounts.count(books[name].line, sums)
    for gang in session.gangs.values() if demand.counts_claims else ():
        for account in books[gang.job.queue].line:
            account.allocated += demand.claimed(gang)
    return books


def _of_flat(session: Session) -> Books:
    promised, books, whole = accounts.guarantees(session), {}, accounts.limits(session)
    for queue in session.queues.values():
        real = accounts.bound_of(session, queue, whole, promised)
        account = _account(session, queue, real, np.minimum(_row(session, queue.deserved), real))
        account.line = (account,)
        books[queue.name] = account
    return books


def _of_tree(session: Session) -> Books:
    queues = _with_root(session)
    tree = queue_tree.grow(queues)
    promised, owed = _sums_below(session, queues, tree)
    books: Books = {}
    for name in sorted(tree.lines, key=lambda name: len(tree.lines[name])):
        queue, above = queues[name], [books[up] for up in tree.lines[name][1:] if up in books]
        if above:
            real = accounts.bound_of(session, queue, above[0].real, promised[above[0].queue.name])
            account = _account(session, queue, real, _row(session, queue.deserved))
        else:
            account = _account(session, queue, infinite_where_absent(session, queue.capability), owed[name])
            account.guarantee = promised[name]
        account.line = (account, *above)
        books[name] = account
    _mark(session, books, tree)
    return books


def _with_root(session: Session) -> dict[str, Queue]:
    """Volcano makes the root when it starts, and has no tree without it; here it is thought of where none is named."""
    if ROOT in session.queues or session.policy.follows_volcano:
        return session.queues
    return session.queues | {ROOT: Queue(ROOT, reclaimable=False)}


def _sums_below(
    session: Session, queues: dict[str, Queue], tree: QueueTree
) -> tuple[dict[str, Vector], dict[str, Vector]]:
    """By queue: what its children are guaranteed, and what they deserve, each no less than it is guaranteed."""
    promised: dict[str, Vector] = defaultdict(lambda: np.zeros_like(session.total))
    owed: dict[str, Vector] = defaultdict(lambda: np.zeros_like(session.total))
    for name, line in tree.lines.items():
        for above in line[1:2]:
            guarantee = _row(session, queues[name].guarantee)
            promised[above] += guarantee
            owed[above] += np.maximum(_row(session, queues[name].deserved), guarantee)
    return promised, owed


def _row(session: Session, amounts: Resources | None) -> Vector:
    return session.dimensions.vector(amounts or {})


def _account(session: Session, queue: Queue, real: Vector, deserved: Vector) -> Account:
    guarantee = _row(session, queue.guarantee)
    allocated, request, inqueue, elastic = np.zeros((4, len(session.total)))
    owns = np.maximum(deserved, guarantee)
    has: Mask = owns >= EPSILON
    owned: Mask = has & session.dimensions.without_pods
    return Account(queue, guarantee, real, owns, allocated, request, inqueue, elastic, owned, counted=has)


def _mark(session: Session, books: Books, tree: QueueTree) -> None:
    """Say which queues take nothing in.

    Volcano's whole tree is out of order for this cycle when one queue hangs nowhere or one job is in an inner queue;
    otherwise only those queues are.
    """
    inner, used = tree.inner, session.sums.keys()
    for name, account in books.items():
        account.is_inner = name in inner
        account.problem = tree.broken.get(name, "") or (HAS_CHILDREN if account.is_inner and name in used else "")
    if session.policy.follows_volcano and any(account.problem for account in books.values()):
        for account in books.values():
            account.problem = account.problem or NOT_READY
