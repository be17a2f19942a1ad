"""What found no place in this action finds none later in it: a thousand gangs that want the same cost one look.

While places are given, room and shares only become less. That holds for gangs whose waiting tasks are all alike and
depend on no other pods, where shares are kept by plugins whose no lasts (`Session.register`).
"""

from collections.abc import Hashable

from hekla.engine.decisions import Reason
from hekla.engine.explaining import Explanations, missing_of
from hekla.engine.gangs import Gang, Member
from hekla.engine.points import Point
from hekla.engine.session import Session


class Futility:
    """Which gangs need not try, and why."""

    def __init__(self, session: Session, explanations: Explanations) -> None:
        self._session, self._explanations = session, explanations
        self._too_much: dict[Hashable, tuple[int, bool]] = {}
        """By queue and class: so many tasks together were too many; and whether for the queue's share."""
        self._stamp = -1
        self._have_places: dict[Hashable, bool] = {}
        self._notes: dict[Hashable, Reason] = {}
        """By class whether there is a place, and by what gangs have in common why not: until the next change."""

    def is_certain(self, gang: Gang) -> bool:
        """It cannot reach its minimum, or have one task more; the reason is noted."""
        if gang.is_in_domains or gang.is_nominated or gang.waiting_count:
            return False
        self._notice_changes()
        examples = self._session.examples(gang)
        if len(examples) == 1:
            return self._is_known(gang, examples[0]) or self._finds_nothing(gang, examples)
        return gang.job.min_available >= gang.size and self._finds_nothing(gang, examples)

    def _notice_changes(self) -> None:
        stamp = len(self._session.table.touched)
        if stamp != self._stamp:
            self._stamp, self._have_places, self._notes = stamp, {}, {}

    def _finds_nothing(self, gang: Gang, examples: list[Member]) -> bool:
        lost = next((member for member in examples if not self._has_place(member)), None)
        if lost is not None:
            self._note(gang, lost, by_share=False)
        if lost is not None and len(examples) == 1:
            self._too_much[self._key(gang, lost)] = 1, False
        return lost is not None

    def _is_known(self, gang: Gang, example: Member) -> bool:
        known = self._too_much.get(self._key(gang, example))
        if known is None or max(missing_of(gang), 1) < known[0]:
            return False
        self._note(gang, example, by_share=known[1])
        return True

    def learn(self, gang: Gang, *, by_share: bool) -> None:
        """Its turn came to nothing, because of the queue's share or for want of room."""
        examples = self._session.examples(gang)
        is_simple = not (gang.is_in_domains or gang.is_nominated or gang.waiting_count) and gang.is_of_one_role
        if len(examples) != 1 or not is_simple or not self._session.is_lasting(Point.ALLOCATABLE):
            return
        if not self._session.places(examples[0]).depends_on_pods:
            key, much = self._key(gang, examples[0]), max(missing_of(gang), 1)
            if key not in self._too_much or much < self._too_much[key][0]:
                self._too_much[key] = much, by_share

    def _key(self, gang: Gang, example: Member) -> Hashable:
        return gang.job.queue, self._session.bound_by(gang), self._session.class_of(example)

    def _has_place(self, member: Member) -> bool:
        key = self._session.class_of(member)
        found = self._have_places.get(key)
        if found is None:
            places = self._session.places(member)
            found = self._have_places[key] = places.depends_on_pods or places.best() is not None
        return found

    def _note(self, gang: Gang, example: Member, *, by_share: bool) -> None:
        is_alone = gang.job.min_available == 1
        key = (self._key(gang, example), missing_of(gang), gang.pending_count, is_alone, by_share)
        found = self._notes.get(key) if gang.is_of_one_role else None
        if found is None:
            why = self._explanations.over_share_alike if by_share else self._explanations.nowhere
            found = why(gang, example)
        if gang.is_of_one_role:
            self._notes[key] = found
        self._session.reasons[gang.job.uid] = (found,)
