"""The extension points of a cycle: where plugins register functions."""

from enum import Enum


class ExtensionPoint(Enum):
    """Extension points by the switch that enables them (before the colon). Signatures of their functions:

    JOB_ORDER                             (job) -> a number or numbers; the smallest comes first
    QUEUE_ORDER, TASK_ORDER               (left, right) -> negative if left comes first
    JOB_READY                             (job) -> bool
    JOB_PIPELINED, JOB_ENQUEUEABLE        (job) -> Vote
    JOB_ENQUEUED                          (job) -> None; called after admission
    JOB_VALID                             (job) -> PendingReason or None
    JOB_STARVING                          (job) -> bool
    OVERUSED                              (queue) -> bool
    ALLOCATABLE                           (queue, pod) -> bool
    WHY_NOT_ALLOCATABLE                   (queue, pods) -> PendingReason, or None if the queue has room
    PREEMPTIVE                            (queue, pods) -> bool: whether the queue may reclaim for them
    PREDICATE, CHANGING_PREDICATE, WIDE_PREDICATE         see `node_fit`
    USE_ORDER, COLUMN_ORDER, NODE_ORDER, WIDE_NODE_ORDER  see `node_fit`
    PREEMPTABLE, RECLAIMABLE              (pod, candidates) -> victims that it allows; None: abstains
    EVICTABLE                             (job, candidates, action) -> victims that it allows; None: abstains
    SPARED                                (pod, candidates) -> those that no plugin may evict
    TRIES_EVICTIONS                       () -> bool: predicates respect tentative evictions
    VICTIM_TASKS                          (running pods) -> those to evict in any case (shuffle)
    VICTIM_QUEUE_ORDER                    (left, right, reclaimer) -> negative if left loses pods first
    QUEUE_SHARE                           (queue, more, less) -> its share with the pods `more` and without `less`;
                                          1.0: all that it deserves
    QUEUE_ACCOUNT                         (queue) -> QueueAttributes
    JOB_SHARE                             (job, more, less) -> the same for a job; 1.0: the whole cluster
    TASK_CLASS                            (pod) -> hashable: splits classes further than request and constraints
    SUBJOB_READY                          (sub-job) -> bool
    SUBJOB_PIPELINED                      (sub-job) -> Vote
    SUBJOB_ORDER                          (left, right) -> negative if left comes first
    HYPERNODE_GRADIENT                    (job or subjob, hypernode, purpose) -> lists of descendants, best list first
    HYPERNODE_ORDER                       (sub-job, hypernodes) -> scores
    DOMAIN_NODE_ORDER                     (pod of a job with a topology, rows) -> scores
    UNSCHEDULABLE                         (job) -> bool: it could not be placed; called at close
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
    COLUMN_ORDER = "enableNodeOrder:columns"
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

    __hash__ = object.__hash__  # the hash of enumerations is slow Python code, and points are looked up at every query

    def __init__(self, value: str) -> None:
        self.switch = value.partition(":")[0]


class Vote(Enum):
    PERMIT = 1
    ABSTAIN = 0
    REJECT = -1
