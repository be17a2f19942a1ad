"""The lifecycle of a job: events, the actions that they cause, and the resulting phases.

Pure steps, each a function of facts that are passed in:

1. `stimuli_of` turns changes of pods into stimuli, `resolve` applies the policies: stimulus -> action. (`overdue` finds
   the policies whose timeout has passed.)
2. `advance` looks the action up in `TRANSITIONS`, a table of phase x action, and returns a `JobOutcome`: the new phase,
   the pods to stop, the pods to create.
3. The caller writes the whole outcome in one transaction and carries it out. It calls again with
   `LifecycleAction.SYNC_JOB` whenever a fact has changed. An extra call changes nothing.

The semantics are Volcano's. Where Volcano's bookkeeping is a disadvantage for the job's owner, this differs:

- `max_retry` is the number of restarts that really happen; the next request for one fails the job.
- A restart or a resumption that a person requests is not a retry, so it is not counted, and it never waits.
- A job whose replica fails again and again waits longer and longer between its restarts (`backoff`).
- Resuming keeps the succeeded pods; all others run again, also failed ones.
- While a job restarts, it can still be aborted, completed or terminated.
- Counts come from the existing pods, also after a kill; the last retry is like the others.
- A lost pod (its node or its record is gone) is replaced like a deleted one, but only up to its task's `max_retry`
  times; then it counts as failed. So a pod that breaks its nodes does not do so forever.
- A task that waits for others is not part of the gang until its pods may be created (`stages`), to avoid a deadlock.
- A job can have a deadline, which Volcano does not have: it counts from the first running pods, over restarts
  (`expire`).
- `JobUpdated` occurs when a person changes the size of a task. `*` does not include it, since it is not a failure.
- An action that the phase does not support is an error for a person, and is ignored for a policy.
"""

from hekla.domain.lifecycle import delegated
from hekla.domain.lifecycle.facts import ActionTarget, JobFacts, PodFacts, PodRef
from hekla.domain.lifecycle.messages import FactMessage, fact, facts_in
from hekla.domain.lifecycle.stages import GangStage, stage_of
from hekla.domain.lifecycle.stimuli import Stimulus, overdue, resized, resolve, stimuli_of
from hekla.domain.lifecycle.targets import target_of
from hekla.domain.lifecycle.transitions import (
    RETRIED,
    TRANSITIONS,
    ImpossibleTransition,
    JobOutcome,
    PhaseChange,
    advance,
    expire,
)

__all__ = [
    "RETRIED",
    "TRANSITIONS",
    "ActionTarget",
    "FactMessage",
    "GangStage",
    "ImpossibleTransition",
    "JobFacts",
    "JobOutcome",
    "PhaseChange",
    "PodFacts",
    "PodRef",
    "Stimulus",
    "advance",
    "delegated",
    "expire",
    "fact",
    "facts_in",
    "overdue",
    "resized",
    "resolve",
    "stage_of",
    "stimuli_of",
    "target_of",
]
