"""An experiment in processes of its own: one that reads it and reports, and one for each run."""

import gc
import os
import sys
from collections.abc import Mapping
from concurrent.futures import Future, ProcessPoolExecutor, wait
from multiprocessing import get_context
from multiprocessing.sharedctypes import Synchronized
from time import monotonic
from typing import Any, TextIO

import orjson

from hekla.domain.errors import Invalid
from hekla.scheduling.column_codec import InvalidRecord
from hekla.simulation.lab import experiment
from hekla.simulation.lab.change import change_as_json, read_change
from hekla.simulation.lab.documents import read_workload, workload_document
from hekla.simulation.lab.experiment import Experiment, FinishedRun, LabColumn
from hekla.simulation.lab.simulated_run import RunBroken

MAX_INPUT_BYTES = 1_000_000_000
_NICE = 10
_REPORT_SECONDS = 0.5
_shared: dict[str, Any] = {}
"""What the processes of the runs inherit: the experiment, and the progress of each run."""


def experiment_document(one: Experiment) -> bytes:
    """The standard input of the process."""
    document = {
        "workload": workload_document(one.workload),
        "policy": one.policy,
        "change": change_as_json(one.change),
    }
    return orjson.dumps(document)


def read_experiment(text: bytes) -> Experiment:
    """The experiment of a document. Raises InvalidRecord and Invalid."""
    try:
        data = orjson.loads(text)
        return Experiment(read_workload(data["workload"]), str(data["policy"]), read_change(data["change"]))
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise InvalidRecord("The experiment is incomplete.") from error


def main() -> int:
    """Run the experiment of standard input."""
    os.nice(_NICE)
    try:
        one = read_experiment(sys.stdin.buffer.read(MAX_INPUT_BYTES))
        found = finish_all(one, lambda part: _print({"progress": round(part, 4)}, sys.stdout))
        _print({"result": experiment.report(one, found)}, sys.stdout)
    except (Invalid, InvalidRecord, RunBroken) as error:
        _print({"problem": str(error)[:500]}, sys.stdout)
        return 1
    return 0


def _print(line: Mapping[str, Any], to: TextIO) -> None:
    to.write(orjson.dumps(line).decode() + "\n")
    to.flush()


def finish_all(one: Experiment, progress: experiment.Progress) -> dict[LabColumn, FinishedRun]:
    """Make all runs of an experiment, several at a time where there are CPUs. Raises as `experiment.finish`."""
    names = experiment.columns(one)
    if len(names) == 1 or (os.cpu_count() or 1) == 1:
        return {
            name: experiment.finish(one, name, lambda part, at=at: progress((at + part) / len(names)))  # type: ignore[misc]
            for at, name in enumerate(names)
        }
    context = get_context("fork")  # the workload is large: the runs inherit it
    _shared["experiment"], _shared["parts"] = one, [context.Value("d", 0.0) for _name in names]
    gc.freeze()
    with ProcessPoolExecutor(len(names), mp_context=context) as pool:
        runs = {name: pool.submit(_finish, name, at) for at, name in enumerate(names)}
        _follow(list(runs.values()), progress)
        return {name: run.result() for name, run in runs.items()}


def _follow(runs: list[Future[FinishedRun]], progress: experiment.Progress) -> None:
    """Report the mean progress of the runs until one fails or all are finished."""
    parts: list[Synchronized[float]] = _shared["parts"]
    left = set(runs)
    while left and not any(run.done() and run.exception() for run in runs):
        left = wait(left, timeout=_REPORT_SECONDS, return_when="FIRST_COMPLETED").not_done
        progress(sum(part.value for part in parts) / len(parts))


def _finish(name: LabColumn, at: int) -> FinishedRun:
    part: Synchronized[float] = _shared["parts"][at]
    last = monotonic()

    def report(done: float) -> None:
        nonlocal last
        if monotonic() - last > _REPORT_SECONDS:
            part.value, last = done, monotonic()

    return experiment.finish(_shared["experiment"], name, report)
