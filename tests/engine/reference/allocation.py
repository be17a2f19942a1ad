"""The actions enqueue, allocate and backfill (`volcano-spec` §4)."""

from tests.engine.reference.amounts import at_most
from tests.engine.reference.heaps import GoHeap
from tests.engine.reference.session import Session, Statement
from tests.engine.reference.state import ALLOCATED, Job, Node, S, Task

from hekla.domain.phases import GangPhase
from hekla.engine.model import QueueSpec


def _by_queue(session: Session, jobs: list[Job]) -> tuple[GoHeap, dict[str, GoHeap]]:
    """A heap of queues, and for each queue a heap of its jobs."""
    heaps: dict[str, GoHeap] = {}
    for job in jobs:
        heaps.setdefault(job.queue, GoHeap(session.plugins.job_less)).push(job)
    queues = (session.state.queues[name] for name in sorted(heaps))
    return GoHeap(session.plugins.queue_less, queues), heaps


def enqueue(session: Session) -> None:
    queues, jobs = _by_queue(session, [job for job in session.state.jobs if job.phase is GangPhase.PENDING])
    while queues:
        queue = queues.pop()
        if not jobs[queue.name]:
            continue
        job = jobs[queue.name].pop()
        if session.plugins.is_enqueueable(job):
            session.plugins.enqueued(job)
            job.phase = GangPhase.INQUEUE
        queues.push(queue)


def allocate(session: Session) -> None:
    if "enqueue" not in session.policy.actions:
        for job in session.state.jobs:
            job.phase = GangPhase.INQUEUE if job.phase is GangPhase.PENDING else job.phase
    queues, jobs = _by_queue(session, session.valid_jobs())
    tasks: dict[str, GoHeap] = {}
    while queues:
        queue = queues.pop()
        if session.plugins.is_overused(queue) or not jobs[queue.name]:
            continue
        job = jobs[queue.name].pop()
        if job.spec.uid not in tasks:
            waiting = (task for task in job.tasks if task.status is S.PENDING and not task.is_best_effort)
            tasks[job.spec.uid] = GoHeap(session.plugins.task_less, waiting)
        if tasks[job.spec.uid] and _allocate_job(session, queue, job, tasks[job.spec.uid]) and tasks[job.spec.uid]:
            jobs[queue.name].push(job)
        queues.push(queue)


def _allocate_job(session: Session, queue: QueueSpec, job: Job, tasks: GoHeap) -> bool:
    """Place tasks of the job; whether it is ready afterwards."""
    statement, failed = Statement(session), set[str]()
    while tasks:
        task = tasks.pop()
        if not session.plugins.is_allocatable(queue, task):
            continue
        session.looked_at.add(task.uid)
        if task.spec.role in failed:
            continue
        node = _node_for(session, task)
        if node is None:
            failed.add(task.spec.role)
            if not _needs_more(job, failed):
                break
            continue
        statement.place(task, node)
        if session.plugins.is_ready(job):
            break
    if session.plugins.is_ready(job):
        statement.commit("allocate", job)
        return True
    if not session.plugins.is_pipelined(job):
        statement.discard()
    return False


def _node_for(session: Session, task: Task) -> Node | None:
    nominated = session.node_named(task.spec.nominated_node)
    if nominated and session.fits_on(task, nominated):
        return nominated
    possible = [node for node in session.state.nodes if session.fits_on(task, node)]
    now = [node for node in possible if at_most(task.request, node.idle)]
    return session.best(task, now or possible)


def _needs_more(job: Job, failed: set[str]) -> bool:
    """NeedContinue: whether other roles can still make the job ready."""
    if job.spec.min_available == len(job.tasks) or job.spec.min_available >= len(job.tasks):
        return False
    if job.skips_roles:
        left = (task for task in job.tasks if task.status is S.PENDING and not task.is_best_effort)
        return job.ready + sum(task.spec.role not in failed for task in left) >= job.spec.min_available
    return not any(job.spec.min_task_member.get(role, 0) > job.count(*ALLOCATED, role=role) for role in failed)


def backfill(session: Session) -> None:
    queues, jobs = _by_queue(session, session.valid_jobs())
    order: list[Task] = []
    while queues:
        heap = jobs[queues.pop().name]
        while heap:
            job = heap.pop()
            free = GoHeap(session.plugins.task_less, (task for task in job.tasks if _is_for_backfill(task)))
            while free:
                order.append(free.pop())
    for task in order:
        _fill(session, task)


def _is_for_backfill(task: Task) -> bool:
    return task.is_best_effort and task.status in (S.PENDING, S.PIPELINED)


def _fill(session: Session, task: Task) -> None:
    if task.status is S.PIPELINED:
        session.unplace(task)
    possible = [
        node for node in session.state.nodes if session.fits_on(task, node) and at_most(task.request, node.idle)
    ]
    node = session.best(task, possible)
    if node is None:
        return
    session.place(task, node, S.ALLOCATED)
    if session.plugins.is_ready(task.job):
        for each in task.job.tasks:
            if each.status is S.ALLOCATED:
                session.bind(each)
