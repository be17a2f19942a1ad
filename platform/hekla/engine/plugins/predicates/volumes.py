"""Filters by persistent volumes: VolumeBinding and VolumeZone.

Bound volumes must be reachable, and claims that wait for a consumer must find or get a volume on the node. A claim that
should be bound and is not (its class binds immediately, or it has none) makes every node infeasible. Volumes that a
placement of this session would use are assumed for it.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from hekla.domain import zones
from hekla.engine.columns import Mask
from hekla.engine.constraints import Requirement
from hekla.engine.job_info import PodInfo
from hekla.engine.node_fit import Refusal
from hekla.engine.plugins.predicates.storage_room import StorageRoom
from hekla.engine.plugins.predicates.used_claims import UsedClaims
from hekla.engine.session import Session
from hekla.engine.storage import PersistentVolume, PersistentVolumeClaim

Pick = tuple[str, str, Mask]
"""A claim, a volume that it could take, and the rows on which it would."""


class VolumeFit(NamedTuple):
    """The rows where every claim of a pod gets a volume; those where only the room for a new one is missing; and which
    volumes that exist they would take.
    """

    found: Mask
    full: Mask
    picks: list[Pick]


def volume_binding(session: Session, pod: PodInfo) -> Iterator[Refusal]:
    """VolumeBinding: refuse nodes out of reach of bound volumes; every node if a claim should be bound."""
    names = pod.spec.constraints.volume_claims
    volumes = {volume.name: volume for volume in session.storage.volumes} if names else {}
    for name in names:
        claim = session.storage.claims.get(name)
        if claim is None:
            yield _everywhere(session, "volume claim not found")
        elif claim.is_ending:
            yield _everywhere(session, "volume claim is being deleted")
        elif claim.volume in volumes:
            yield Refusal(~session.node_index.matching_any(volumes[claim.volume].node_terms), "volume out of reach")
        elif claim.volume:
            yield _everywhere(session, "volume not found")
        elif not _waits(session, claim):
            yield _everywhere(session, "volume claim not bound")


def _everywhere(session: Session, reason: str) -> Refusal:
    return Refusal(np.ones(len(session.table), dtype=bool), reason)


def _waits(session: Session, claim: PersistentVolumeClaim) -> bool:
    storage_class = session.storage.classes.get(claim.storage_class)
    return not claim.volume and storage_class is not None and storage_class.waits_for_consumer


class AssumedVolumes(UsedClaims):
    """The volumes that claims have, or would get for pods on nodes: those of this session, and those that start.

    They are computed when the first pod with claims is considered.
    """

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._reported = {volume.name: volume.claim for volume in session.storage.volumes if volume.claim}
        self._claim_of = dict(self._reported)
        self._provisioned: dict[str, int] = {}
        """The rows on which claims would get new volumes."""
        self._users: Counter[str] = Counter()
        self._room = StorageRoom(session)
        if session.storage.claims:
            session.on_change.append(self._update)

    def predicate(self, _session: Session, pod: PodInfo) -> Callable[[], Iterator[Refusal]] | None:
        """Refuse nodes where a waiting claim would get no volume."""
        claims = self._waiting(pod)
        if not claims:
            return None
        if not self._is_loaded:
            self._load()

        def refuse() -> Iterator[Refusal]:
            rows = self._find(claims)
            yield Refusal(rows.full, "no room for a new volume")
            yield Refusal(~rows.found & ~rows.full, "no volume to bind")

        return refuse

    def _claims_of(self, pod: PodInfo) -> Collection[str]:
        return pod.spec.constraints.volume_claims

    def _waiting(self, pod: PodInfo) -> list[str]:
        """The claims that wait for a consumer, the smallest first."""
        known = self._session.storage.claims
        names = [name for name in pod.spec.constraints.volume_claims if name in known]
        return sorted((name for name in names if _waits(self._session, known[name])), key=lambda name: known[name].size)

    def _count(self, pod: PodInfo, row: int, sign: int) -> None:
        names = self._waiting(pod)
        news = [name for name in names if not self._users[name]]
        self._users.update(dict.fromkeys(names, sign))
        if sign > 0:
            self._assume(news, row)
        else:
            self._release({name for name in names if not self._users[name]})

    def _assume(self, claims: Sequence[str], row: int) -> None:
        picked = {claim: volume for claim, volume, rows in self._find(claims).picks if rows[row]}
        self._claim_of.update({volume: claim for claim, volume in picked.items()})
        self._provisioned.update({claim: row for claim in claims if claim not in picked})

    def _release(self, claims: Iterable[str]) -> None:
        self._claim_of = {
            volume: claim
            for volume, claim in self._claim_of.items()
            if claim not in claims or self._reported.get(volume) == claim
        }
        for claim in claims:
            self._provisioned.pop(claim, None)

    def _find(self, claims: Sequence[str]) -> VolumeFit:
        """Where every claim gets a volume: the smallest free one, or else a new one."""
        session = self._session
        everywhere: Mask = np.ones(len(session.table), dtype=bool)
        has_room = everywhere
        free: dict[str, Mask] = {}
        picks: list[Pick] = []
        for name in claims:
            found, claim = np.zeros_like(everywhere), session.storage.claims[name]
            if (place := self._place(name, claim)) is not None:
                found[place] = True
                everywhere = everywhere & found & self._can_provision(claim)
                has_room = has_room & self._room.fits(claim)
                continue
            for volume in self._candidates(name):
                reach = free.setdefault(volume.name, session.node_index.matching_any(volume.node_terms))
                pick = reach & ~found
                free[volume.name], found = reach & ~pick, found | pick
                picks.append((name, volume.name, pick))
            everywhere = everywhere & (found | self._can_provision(claim))
            if not (claim.selected_node or name in self._provisioned):  # elsewhere, for pods that share it
                has_room = has_room & (found | self._room.fits(claim))
        return VolumeFit(everywhere & has_room, everywhere & ~has_room, picks)

    def _place(self, name: str, claim: PersistentVolumeClaim) -> list[int] | None:
        """The rows, at most one, where the claim's new volume is provisioned; None if it may be any, or none is.

        A gang would not start if all of its pods had to be there, so pods may be elsewhere if the claim can be shared
        by nodes. They start if its volume can be reached. With `compatibility: volcano` they may not.
        """
        if claim.can_be_shared and not self._session.policy.follows_volcano:
            return None
        if claim.selected_node:
            row = self._session.table.row_of.get(claim.selected_node)
            return [] if row is None else [row]
        return [self._provisioned[name]] if name in self._provisioned else None

    def _candidates(self, name: str) -> list[PersistentVolume]:
        claim, assumed = self._session.storage.claims[name], {v for v, c in self._claim_of.items() if c == name}
        fitting = [
            v for v in self._session.storage.volumes if v.name in assumed or (self._is_free(v) and v.fits(claim))
        ]
        chosen = [volume for volume in fitting if volume.name in assumed] or fitting
        return sorted(chosen, key=lambda volume: volume.rank)

    def _is_free(self, volume: PersistentVolume) -> bool:
        return volume.is_available and volume.name not in self._claim_of

    def _can_provision(self, claim: PersistentVolumeClaim) -> Mask:
        storage_class = self._session.storage.classes[claim.storage_class]
        if not storage_class.provisions:
            return np.zeros(len(self._session.table), dtype=bool)
        return self._session.node_index.matching_any(storage_class.topologies)


def volume_zone(session: Session, pod: PodInfo) -> Iterator[Refusal]:
    """VolumeZone: refuse nodes outside the zones of a bound volume. Nodes without zone labels are not checked.

    The label of a volume may name several zones, separated by two underscores.
    """
    nodes, storage = session.node_index, session.storage
    volumes = {storage.claims[claim].volume for claim in pod.spec.constraints.volume_claims if claim in storage.claims}
    for volume in (volume for volume in storage.volumes if volume.name in volumes):
        for key in (key for key in zones.LABELS if key in volume.labels):
            there = nodes.matching(Requirement(key, "In", tuple(volume.labels[key].split("__"))))
            zoned = np.logical_or.reduce([nodes.domain(label).has_label for label in zones.LABELS])
            yield Refusal(zoned & ~there, "volume in another zone")
