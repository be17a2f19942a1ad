"""The actions enqueue, allocate and backfill (`volcano-spec` §4)."""

from tests.engine.reference.amounts import at_most
from tests.engine.reference.heaps import GoHeap
from tests.engine.reference.run import Run, Statement
from tests.engine.reference.world import ALLOCATED, Job, Node, S, Task

from hekla.domain.phases import GangPhase
from hekla.engine.model import QueueSpec


def _by_queue(run: Run, jobs: list[Job]) -> tuple[GoHeap, dict[str, GoHeap]]:
    """A heap of queues, and for each of them one of its jobs."""
    heaps: dict[str, GoHeap] = {}
    for job in jobs:
        heaps.setdefault(job.queue, GoHeap(run.voices.job_less)).push(job)
    queues = (run.world.queues[name] for name in sorted(heaps))
    return GoHeap(run.voices.queue_less, queues), heaps


def enqueue(run: Run) -> None:
    queues, jobs = _by_queue(run, [job for job in run.world.jobs if job.phase is GangPhase.PENDING])
    while queues:
        queue = queues.pop()
        if not jobs[queue.name]:
            continue
        job = jobs[queue.name].pop()
        if run.voices.is_enqueueable(job):
            run.voices.enqueued(job)
            job.phase = GangPhase.INQUEUE
        queues.push(queue)


def allocate(run: Run) -> None:
    if "enqueue" not in run.policy.actions:
        for job in run.world.jobs:
            job.phase = GangPhase.INQUEUE if job.phase is GangPhase.PENDING else job.phase
    queues, jobs = _by_queue(run, run.valid_jobs())
    tasks: dict[str, GoHeap] = {}
    while queues:
        queue = queues.pop()
        if run.voices.is_overused(queue) or not jobs[queue.name]:
            continue
        job = jobs[queue.name].pop()
        if job.spec.uid not in tasks:
            waiting = (task for task in job.tasks if task.status is S.PENDING and not task.asks_for_nothing)
            tasks[job.spec.uid] = GoHeap(run.voices.task_less, waiting)
        if tasks[job.spec.uid] and _turn(run, queue, job, tasks[job.spec.uid]) and tasks[job.spec.uid]:
            jobs[queue.name].push(job)
        queues.push(queue)


def _turn(run: Run, queue: QueueSpec, job: Job, tasks: GoHeap) -> bool:
    """Whether the job was ready at the end."""
    statement, failed = Statement(run), set[str]()
    while tasks:
        task = tasks.pop()
        if not run.voices.is_allocatable(queue, task):
            continue
        run.looked_at.add(task.uid)
        if task.spec.role in failed:
            continue
        node = _node_for(run, task)
        if node is None:
            failed.add(task.spec.role)
            if not _needs_more(job, failed):
                break
            continue
        statement.place(task, node)
        if run.voices.is_ready(job):
            break
    if run.voices.is_ready(job):
        statement.commit("allocate", job)
        return True
    if not run.voices.is_pipelined(job):
        statement.discard()
    return False


def _node_for(run: Run, task: Task) -> Node | None:
    nominated = run.node_named(task.spec.nominated_node)
    if nominated and run.may_hold(task, nominated):
        return nominated
    possible = [node for node in run.world.nodes if run.may_hold(task, node)]
    now = [node for node in possible if at_most(task.request, node.idle)]
    return run.best(task, now or possible)


def _needs_more(job: Job, failed: set[str]) -> bool:
    """NeedContinue: whether other roles can still make the job ready."""
    if job.spec.min_available == len(job.tasks) or job.spec.min_available >= len(job.tasks):
        return False
    if job.skips_roles:
        left = (task for task in job.tasks if task.status is S.PENDING and not task.asks_for_nothing)
        return job.ready + sum(task.spec.role not in failed for task in left) >= job.spec.min_available
    return not any(job.spec.min_task_member.get(role, 0) > job.count(*ALLOCATED, role=role) for role in failed)


def backfill(run: Run) -> None:
    queues, jobs = _by_queue(run, run.valid_jobs())
    order: list[Task] = []
    while queues:
        heap = jobs[queues.pop().name]
        while heap:
            job = heap.pop()
            free = GoHeap(run.voices.task_less, (task for task in job.tasks if _is_for_backfill(task)))
            while free:
                order.append(free.pop())
    for task in order:
        _fill(run, task)


def _is_for_backfill(task: Task) -> bool:
    return task.asks_for_nothing and task.status in (S.PENDING, S.PIPELINED)


def _fill(run: Run, task: Task) -> None:
    if task.status is S.PIPELINED:
        run.unplace(task)
    possible = [node for node in run.world.nodes if run.may_hold(task, node) and at_most(task.request, node.idle)]
    node = run.best(task, possible)
    if node is None:
        return
    run.place(task, node, S.ALLOCATED)
    if run.voices.is_ready(task.job):
        for each in task.job.tasks:
            if each.status is S.ALLOCATED:
                run.bind(each)
