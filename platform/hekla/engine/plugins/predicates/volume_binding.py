"""VolumeBinding: bound volumes must be reachable, claims that wait for a node must find or get a volume there.

A claim that should be bound already and is not (its class binds at once, or it has none) keeps its pod from every node.
Volumes that a placement of this session would use are kept for it.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from hekla.engine.columns import Mask
from hekla.engine.gangs import Member
from hekla.engine.places import Refusal
from hekla.engine.session import Session
from hekla.engine.storage import NO_PROVISIONER, Claim, Volume

Pick = tuple[str, str, Mask]
"""A claim, the volume it would take, and the rows on which it would."""


def refusals(session: Session, member: Member) -> Iterator[Refusal]:
    """What claims that are bound, or ought to be, allow."""
    volumes = {volume.name: volume for volume in session.storage.volumes}
    for name in member.task.conditions.claims:
        claim = session.storage.claims.get(name)
        if claim is None:
            yield _everywhere(session, "volume claim not found")
        elif claim.volume in volumes:
            yield Refusal(~session.nodes.in_one_of(volumes[claim.volume].node_terms), "volume out of reach")
        elif claim.volume:
            yield _everywhere(session, "volume not found")
        elif not _waits(session, claim):
            yield _everywhere(session, "volume claim not bound")


def _everywhere(session: Session, reason: str) -> Refusal:
    return Refusal(np.ones(len(session.table), dtype=bool), reason)


def _waits(session: Session, claim: Claim) -> bool:
    storage_class = session.storage.classes.get(claim.storage_class)
    return not claim.volume and storage_class is not None and storage_class.waits


class Promises:
    """Which volumes the placements of this session would use, by volume."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._claim_of = {volume.name: volume.claim for volume in session.storage.volumes if volume.claim}
        if session.storage.claims:
            session.on_change.append(self._hear)

    def refusals_now(self, _session: Session, member: Member) -> Callable[[], Iterator[Refusal]] | None:
        """Refuse nodes on which a waiting claim would get no volume."""
        claims = self._waiting(member)
        if not claims:
            return None

        def refuse() -> Iterator[Refusal]:
            yield Refusal(~self._find(claims)[0], "no volume to bind")

        return refuse

    def _waiting(self, member: Member) -> list[str]:
        """The claims to find volumes for, the smallest first."""
        known = self._session.storage.claims
        names = [name for name in member.task.conditions.claims if name in known]
        return sorted((name for name in names if _waits(self._session, known[name])), key=lambda name: known[name].size)

    def _hear(self, member: Member, row: int, sign: int) -> None:
        claims = self._waiting(member)
        if sign > 0:
            self._claim_of.update({volume: claim for claim, volume, rows in self._find(claims)[1] if rows[row]})
        else:
            self._claim_of = {volume: claim for volume, claim in self._claim_of.items() if claim not in claims}

    def _find(self, claims: Sequence[str]) -> tuple[Mask, list[Pick]]:
        """Where every claim gets a volume, and which: the smallest that is free, or else a new one."""
        session = self._session
        everywhere: Mask = np.ones(len(session.table), dtype=bool)
        free: dict[str, Mask] = {}
        picks: list[Pick] = []
        for name in claims:
            found = np.zeros_like(everywhere)
            for volume in self._candidates(name):
                reach = free.setdefault(volume.name, session.nodes.in_one_of(volume.node_terms))
                pick = reach & ~found
                free[volume.name], found = reach & ~pick, found | pick
                picks.append((name, volume.name, pick))
            everywhere = everywhere & (found | self._can_be_made(session.storage.claims[name]))
        return everywhere, picks

    def _candidates(self, name: str) -> list[Volume]:
        claim, kept = self._session.storage.claims[name], {v for v, c in self._claim_of.items() if c == name}
        fitting = [v for v in self._session.storage.volumes if v.name in kept or (self._is_free(v) and _fits(claim, v))]
        chosen = [volume for volume in fitting if volume.name in kept] or fitting
        return sorted(chosen, key=lambda volume: (volume.size, volume.name))

    def _is_free(self, volume: Volume) -> bool:
        return volume.name not in self._claim_of

    def _can_be_made(self, claim: Claim) -> Mask:
        storage_class = self._session.storage.classes[claim.storage_class]
        if storage_class.provisioner in ("", NO_PROVISIONER):
            return np.zeros(len(self._session.table), dtype=bool)
        return self._session.nodes.in_one_of(storage_class.topologies)


def _fits(claim: Claim, volume: Volume) -> bool:
    same_class = claim.storage_class == volume.storage_class
    return same_class and claim.size <= volume.size and claim.access_modes <= volume.access_modes
