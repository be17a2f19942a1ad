"""The points of a cycle at which plugins speak."""

from enum import Enum


class Point(Enum):
    """Where a plugin may speak, and the switch that lets it (before the colon). What its function takes and gives:

    JOB_ORDER                             (gang) -> a number, or numbers: the smaller goes first
    QUEUE_ORDER, TASK_ORDER               (left, right) -> below zero when left goes first
    JOB_READY                             (gang) -> bool
    JOB_PIPELINED, JOB_ENQUEUEABLE        (gang) -> Vote
    JOB_ENQUEUED                          (gang) -> None, told after it was let in
    JOB_VALID                             (gang) -> Reason or None
    JOB_STARVING                          (gang) -> bool
    OVERUSED                              (queue) -> bool
    ALLOCATABLE                           (queue, member) -> bool
    WHY_NOT_ALLOCATABLE                   (queue, members) -> Reason or None: why the queue has no room for all of them
    PREEMPTIVE                            (queue, members) -> bool: may its queue take from others for them
    PREDICATE, CHANGING_PREDICATE, WIDE_PREDICATE, USE_ORDER, NODE_ORDER, WIDE_NODE_ORDER    see `places`
    PREEMPTABLE, RECLAIMABLE              (member, candidates) -> those that may be evicted for it; None: abstains
    EVICTABLE                             (gang, candidates, action) -> those that may be evicted for it; None: abstains
    SPARED                                (member, candidates) -> those that must not be evicted, whatever others say
    TRIES_EVICTIONS                       () -> bool: predicates heed evictions that are only tried
    VICTIM_TASKS                          (members that run) -> those to evict in any case
    VICTIM_QUEUE_ORDER                    (left, right, of) -> below zero when left's tasks go first
    QUEUE_SHARE                           (queue, more, less) -> what it would hold of what it deserves if it held the
                                          places of the members `more` too, and not those of `less`; 1.0: all of it
    QUEUE_ACCOUNT                         (queue) -> what it holds, asks for, deserves and may hold (`accounts.Account`)
    JOB_SHARE                             (gang, more, less) -> the same for a job, as a part of the cluster
    TASK_CLASS                            (member) -> hashable: what else than request and conditions parts its class
    SUBJOB_READY                          (sub-group) -> bool
    SUBJOB_PIPELINED                      (sub-group) -> Vote
    SUBJOB_ORDER                          (left, right) -> below zero when left goes first
    HYPERNODE_GRADIENT                    (claim, domain, purpose) -> lists of domains below it, the best list first
    HYPERNODE_ORDER                       (sub-group, domains) -> scores
    DOMAIN_NODE_ORDER                     (member of a gang with a topology, rows) -> scores
    UNSCHEDULABLE                         (gang) -> bool, asked when the session closes: the gang could not be placed
    """

    JOB_ORDER = "enableJobOrder"
    QUEUE_ORDER = "enableQueueOrder"
    TASK_ORDER = "enableTaskOrder"
    JOB_READY = "enableJobReady"
    JOB_PIPELINED = "enableJobPipelined"
    JOB_ENQUEUEABLE = "enableJobEnqueued"
    JOB_ENQUEUED = "enableJobEnqueued:hook"
    JOB_VALID = ""
    OVERUSED = "enabledOverused"
    ALLOCATABLE = "enabledAllocatable"
    WHY_NOT_ALLOCATABLE = "enabledAllocatable:why"
    PREDICATE = "enablePredicate"
    CHANGING_PREDICATE = "enablePredicate:changing"
    WIDE_PREDICATE = "enablePredicate:wide"
    NODE_ORDER = "enableNodeOrder"
    USE_ORDER = "enableNodeOrder:use"
    WIDE_NODE_ORDER = "enableNodeOrder:wide"
    JOB_STARVING = "enableJobStarving"
    PREEMPTIVE = "enablePreemptive"
    PREEMPTABLE = "enablePreemptable"
    RECLAIMABLE = "enableReclaimable"
    EVICTABLE = "enablePreemptable:unified"
    SPARED = "enablePreemptable:spared"
    TRIES_EVICTIONS = "enablePreemptable:tries"
    VICTIM_TASKS = "enabledVictim"
    VICTIM_QUEUE_ORDER = "enableQueueOrder:victims"
    QUEUE_SHARE = ":queue share"
    QUEUE_ACCOUNT = ":queue account"
    JOB_SHARE = ":job share"
    TASK_CLASS = ":class"
    SUBJOB_READY = "enabledSubJobReady"
    SUBJOB_PIPELINED = "enabledSubJobPipelined"
    SUBJOB_ORDER = "enabledSubJobOrder"
    HYPERNODE_GRADIENT = "enabledHyperNodeGradient"
    HYPERNODE_ORDER = "enabledHyperNodeOrder"
    DOMAIN_NODE_ORDER = "enableNodeOrder:domain"
    UNSCHEDULABLE = ":close"

    __hash__ = object.__hash__  # that of enumerations is in Python, and points are looked up at every question

    @property
    def switch(self) -> str:
        return self.value.partition(":")[0]


class Vote(Enum):
    PERMIT = 1
    ABSTAIN = 0
    REJECT = -1
