"""The runs of an experiment, each in a process of its own where there are CPUs."""

import gc
import os
from concurrent.futures import Future, ProcessPoolExecutor, wait
from multiprocessing import active_children, get_context
from multiprocessing.sharedctypes import Synchronized
from time import monotonic
from typing import Any

from hekla.simulation.lab import experiment
from hekla.simulation.lab.experiment import Experiment, FinishedRun, LabColumn
from hekla.simulation.lab.simulated_run import Progress

_REPORT_SECONDS = 0.5
_COLLECT_STEPS, _COLLECT_ALL_STEPS = 500, 10_000
_shared: dict[str, Any] = {}
"""What the processes of the runs inherit: the experiment, and the progress of each run."""


def finish_all(one: Experiment, progress: Progress) -> dict[LabColumn, FinishedRun]:
    """Make all runs of an experiment, several at a time where there are CPUs. Raises as `experiment.finish`."""
    names = experiment.columns(one)
    if len(names) == 1 or (os.cpu_count() or 1) == 1:
        tell = _seldom(progress)
        return {
            name: experiment.finish(one, name, lambda part, at=at: tell((at + part) / len(names)))  # type: ignore[misc]
            for at, name in enumerate(names)
        }
    context = get_context("fork")  # the workload is large: the runs inherit it
    _shared["experiment"], _shared["parts"] = one, [context.Value("d", 0.0) for _name in names]
    gc.freeze()
    with ProcessPoolExecutor(len(names), mp_context=context) as pool:
        runs = {name: pool.submit(_finish, name, at) for at, name in enumerate(names)}
        try:
            _follow(list(runs.values()), progress)
            return {name: run.result() for name, run in runs.items()}
        except BaseException:
            for fork in active_children():  # the pool would wait for their runs
                fork.kill()
            raise


def _seldom(progress: Progress) -> Progress:
    """A run has many steps, and reports are rows in the database."""
    last = 0.0

    def report(done: float) -> None:
        nonlocal last
        if monotonic() - last > _REPORT_SECONDS:
            last = monotonic()
            progress(done)

    return report


def _follow(runs: list[Future[FinishedRun]], progress: Progress) -> None:
    """Report the mean progress of the runs until all are finished. Raises the error of the first that fails."""
    parts: list[Synchronized[float]] = _shared["parts"]
    left = set(runs)
    while left and not any(run.done() and run.exception() for run in runs):
        left = wait(left, timeout=_REPORT_SECONDS, return_when="FIRST_COMPLETED").not_done
        progress(sum(part.value for part in parts) / len(parts))
    for run in runs:
        if run.done():
            run.result()


def _finish(name: LabColumn, at: int) -> FinishedRun:
    gc.disable()  # else there is a collection after each cycle of the engine, of all jobs
    part, parent = _shared["parts"][at], os.getppid()
    last, steps = monotonic(), 0

    def report(done: float) -> None:
        nonlocal last, steps
        steps += 1
        if steps % _COLLECT_ALL_STEPS == 0:
            gc.collect()  # jobs of the engine and their pods refer to each other, and live through many steps
        elif steps % _COLLECT_STEPS == 0:
            gc.collect(0)  # only what is new
        if monotonic() - last > _REPORT_SECONDS:
            part.value, last = done, monotonic()
            if os.getppid() != parent:  # nobody is left to wait for the result
                os._exit(1)

    return experiment.finish(_shared["experiment"], name, report)
