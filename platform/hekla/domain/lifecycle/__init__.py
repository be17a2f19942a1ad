"""The life of a job: what happened, what is to be done about it, and where that leads.

Pure steps, each a function of facts that are passed in:

1. `stimuli_of` reads what the news of pods mean, `resolve` reads the policies: stimulus -> action. (`overdue`
   finds the policies with a timeout whose time has come.)
2. `advance` looks the action up in `TRANSITIONS`, a table of phase x action, and answers with an `Outcome`: the new
   phase, the pods to stop, the pods to create.
3. The caller writes all of the outcome in one transaction and carries it out; it calls again with `Action.SYNC_JOB`
   whenever a fact changed. To call once too often changes nothing.

The semantics are Volcano's. Where its bookkeeping works against the person who waits for the job, this differs:

- `max_retry` is the number of restarts that are really done; the next one that is asked for fails the job.
- A restart or a resumption that a person asks for is a wish, not a retry: it is not counted.
- Resuming keeps what had succeeded; all else, also what had failed, runs again.
- While a job restarts it can still be aborted, completed or terminated.
- Counts are taken from the pods that are there, also after a kill; the last retry is like the others.
- A pod that was lost (its node or its record is gone) is replaced like a deleted one, but only as often as its task's
  `max_retry` says; then it counts as failed. So a pod that breaks its machines does not do so for ever.
- A task that waits for others is no part of the gang until its pods may be made (`stages`): nothing waits for itself.
- A job can have a deadline, which Volcano's has not: it counts from the first pods at work, over restarts (`expire`).
- `JobUpdated` happens: a person gave a task another size. `*` does not mean it, since nothing went wrong.
- Asking for an action that the phase does not know is an error for a person, and nothing for a policy.
"""

from hekla.domain.lifecycle import delegated
from hekla.domain.lifecycle.facts import ActionTarget, JobFacts, PodFacts, PodRef
from hekla.domain.lifecycle.messages import FactMessage, fact, facts_in
from hekla.domain.lifecycle.stages import GangStage, stage_of
from hekla.domain.lifecycle.stimuli import Stimulus, overdue, resized, resolve, stimuli_of
from hekla.domain.lifecycle.targets import target_of
from hekla.domain.lifecycle.transitions import (
    TRANSITIONS,
    ImpossibleTransition,
    JobOutcome,
    PhaseChange,
    advance,
    expire,
)

__all__ = [
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
