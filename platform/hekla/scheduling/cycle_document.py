"""A scheduling cycle as one document: the engine's input, the policy, the answers of extenders, and what it decided.

A document is whole, or refers to a whole one of the same cluster (its base): jobs, nodes and queues that are the very
same objects as there are named by their positions. The engine's cache relies on the same identity, so a later cycle
costs what changed. `FORMAT` is raised when a reader of the earlier format would read something else.
"""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import accumulate, islice, pairwise
from typing import Any

import orjson

from hekla.domain.phases import GangPhase
from hekla.engine.decisions import Decisions
from hekla.engine.model import ClusterState, NodeSpec, PodGroupSpec, PodSpec, QueueSpec
from hekla.scheduling.column_codec import InvalidRecord, Json, ValueTable, decode, read_columns

FORMAT = 1
MAX_BYTES = 512_000_000
"""Of an unpacked document: 10,000 nodes and 300,000 pods need a tenth of it."""
_LEVEL = 1
"""Of zlib: higher levels save a tenth of the bytes, and cost several times the CPU."""
_LISTS: Mapping[str, type] = {"nodes": NodeSpec, "queues": QueueSpec, "jobs": PodGroupSpec}
_REST = tuple(one.name for one in fields(ClusterState) if one.name not in _LISTS)
_NEW = -1
ExtenderReply = tuple[bool, Any]
"""Whether an extender answered, and its answer, or else the error."""


@dataclass(frozen=True, slots=True)
class CycleOutcome:
    """What a cycle decided, in a form that can be compared.

    `binds`: job, pod, node and annotations; `evictions`: job, pod, node, action and beneficiary; both in the order of
    the decisions. `phases`: of the jobs whose phase changed. `refusals`: why a job waits, of the jobs that were asked
    for. `faults`: plugins and actions that failed.
    """

    binds: tuple[tuple[str, str, str, tuple[tuple[str, str], ...]], ...] = ()
    evictions: tuple[tuple[str, str, str, str, str], ...] = ()
    pipelined: Mapping[str, str] = field(default_factory=dict)
    phases: Mapping[str, str] = field(default_factory=dict)
    refusals: Mapping[str, str] = field(default_factory=dict)
    faults: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RecordedCycle:
    """The input of a cycle and its outcome. `now` in seconds since the epoch; `answers`: of extenders, in order."""

    state: ClusterState
    policy: str
    now: float
    outcome: CycleOutcome
    answers: tuple[ExtenderReply, ...] = ()


def outcome_of(state: ClusterState, decided: Decisions, waiting: Sequence[str]) -> CycleOutcome:
    """The outcome of a cycle. `waiting`: the jobs whose reasons are recorded."""
    before = {job.uid: job.phase for job in state.jobs}
    return CycleOutcome(
        tuple(
            (one.job, one.pod, one.node, tuple(sorted(one.annotations.items())) if one.annotations else ())
            for one in decided.binds
        ),
        tuple((one.job, one.pod, one.node, one.action, one.for_job) for one in decided.evictions),
        dict(decided.pipelined),
        {uid: str(phase) for uid, phase in decided.phases.items() if phase is not before.get(uid)},
        {uid: _refusal(decided, uid) for uid in waiting},
        tuple(f"{one.name} at {one.point}" for one in decided.faults),
    )


def _refusal(decided: Decisions, uid: str) -> str:
    return "; ".join(f"{one.action}/{one.plugin}: {one.code}" for one in decided.reasons.get(uid, ()))


class BaseDocument:
    """The state of a whole document, for documents that refer to it."""

    def __init__(self, state: ClusterState) -> None:
        self.state = state
        self.positions = {name: {id(one): at for at, one in enumerate(getattr(state, name))} for name in _LISTS}


def pack(cycle: RecordedCycle, base: BaseDocument | None = None) -> bytes:
    """The document, compressed."""
    return zlib.compress(orjson.dumps(document(cycle, base)), _LEVEL)


def unpack(data: bytes) -> Json:
    """The document of `pack`. Raises InvalidRecord, also if it is unreasonably large."""
    reader = zlib.decompressobj()
    try:
        text = reader.decompress(data, MAX_BYTES)
        if reader.unconsumed_tail:
            raise InvalidRecord("The record is too large.")
        return orjson.loads(text)
    except (zlib.error, orjson.JSONDecodeError) as error:
        raise InvalidRecord("The record is damaged.") from error


def document(cycle: RecordedCycle, base: BaseDocument | None = None) -> Json:
    """The document as JSON; whole without a base."""
    values = ValueTable()
    state, known = cycle.state, base.state if base else None
    parts = {name: _part(name, state, values, base) for name in _LISTS}
    rest = {
        name: values.position(getattr(state, name))
        for name in _REST
        if known is None or getattr(state, name) is not getattr(known, name)
    }
    return {
        "format": FORMAT,
        "is_whole": base is None,
        "now": cycle.now,
        "policy": cycle.policy,
        **parts,
        "rest": rest,
        "values": values.encoded,
        "answers": [list(one) for one in cycle.answers],
        "outcome": _outcome_as_json(cycle.outcome),
    }


def _part(name: str, state: ClusterState, values: ValueTable, base: BaseDocument | None) -> Json:
    """One list of the state: where each object is in the base, as runs, and the columns of the new ones."""
    objects = getattr(state, name)
    if base is None:
        return {"new": _columns(name, objects, values)}
    if objects is getattr(base.state, name):
        return {"runs": [[0, len(objects)]], "new": _columns(name, (), values)}
    known = base.positions[name]
    at = [known.get(id(one), _NEW) for one in objects]
    new = [one for one, position in zip(objects, at, strict=True) if position == _NEW]
    return {"runs": [*_runs(at)], "new": _columns(name, new, values)}


def _runs(positions: Sequence[int]) -> Iterator[list[int]]:
    """Runs of ascending positions: where one begins, and how many there are; -1 stands for new objects."""
    run = [_NEW - 1, 0]
    for one in positions:
        is_next = one == _NEW == run[0] if one == _NEW or run[0] == _NEW else one == run[0] + run[1]
        if is_next:
            run[1] += 1
            continue
        if run[1]:
            yield run
        run = [one, 1]
    if run[1]:
        yield run


def _columns(name: str, objects: Sequence[Any], values: ValueTable) -> Json:
    if name != "jobs":
        return values.columns(objects)
    pods = [pod for job in objects for pod in job.pods]
    sizes = [len(job.pods) for job in objects]
    return {"groups": values.columns(objects, without=("pods",)), "sizes": sizes, "pods": values.columns(pods)}


def _outcome_as_json(outcome: CycleOutcome) -> Json:
    return {one.name: getattr(outcome, one.name) for one in fields(outcome)}


def read(data: Json, base: ClusterState | None = None) -> RecordedCycle:
    """The cycle of a document. `base`: the state of the document that it refers to. Raises InvalidRecord."""
    try:
        if not isinstance(data, dict) or data["format"] != FORMAT:
            raise InvalidRecord("The file is no recorded cycle in a format that this version reads.")
        if not data["is_whole"] and base is None:
            raise InvalidRecord("The record refers to another one, which is missing.")
        known = None if data["is_whole"] else base
        values = [decode(one) for one in data["values"]]
        lists: dict[str, Any] = {name: tuple(_read_part(name, data[name], values, known)) for name in _LISTS}
        rest = {
            name: values[data["rest"][name]] if name in data["rest"] else getattr(known, name)
            for name in _REST
            if known is not None or name in data["rest"]
        }
        state = ClusterState(**lists, **rest)
        answers = tuple((bool(is_answer), answer) for is_answer, answer in data["answers"])
        return RecordedCycle(state, str(data["policy"]), float(data["now"]), _read_outcome(data["outcome"]), answers)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        if isinstance(error, InvalidRecord):
            raise
        raise InvalidRecord("The record is incomplete.") from error


def _read_part(name: str, part: Json, values: Sequence[Any], base: ClusterState | None) -> Iterator[Any]:
    new = iter(_read_new(name, part["new"], values))
    if base is None:
        yield from new
        return
    known = getattr(base, name)
    for start, count in part["runs"]:
        if start == _NEW:
            yield from islice(new, count)
        elif 0 <= start <= start + count <= len(known):
            yield from known[start : start + count]
        else:
            raise InvalidRecord("The record refers to objects that its base lacks.")


def _read_new(name: str, table: Json, values: Sequence[Any]) -> list[Any]:
    if name != "jobs":
        return read_columns(_LISTS[name], table, values)
    pods = read_columns(PodSpec, table["pods"], values)
    sizes = table["sizes"]
    ends = list(accumulate(sizes, initial=0))
    if ends[-1] != len(pods) or min(sizes, default=0) < 0:
        raise InvalidRecord("The pods of the jobs are incomplete.")
    of_jobs = [tuple(pods[start:end]) for start, end in pairwise(ends)]
    return read_columns(PodGroupSpec, table["groups"], values, {"pods": of_jobs})


def _read_outcome(data: Json) -> CycleOutcome:
    return CycleOutcome(
        tuple((job, pod, node, tuple((k, v) for k, v in notes)) for job, pod, node, notes in data["binds"]),
        tuple((job, pod, node, action, gainer) for job, pod, node, action, gainer in data["evictions"]),
        dict(data["pipelined"]),
        {uid: str(GangPhase(phase)) for uid, phase in data["phases"].items()},
        {str(uid): str(text) for uid, text in data["refusals"].items()},
        tuple(map(str, data["faults"])),
    )
