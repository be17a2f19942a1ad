"""The actions preempt and reclaim (`volcano-spec` §4)."""

from collections.abc import Callable

from tests.engine.reference.amounts import at_most, plus, total
from tests.engine.reference.heaps import GoHeap
from tests.engine.reference.session import Session, Statement
from tests.engine.reference.state import Job, Node, S, Task

from hekla.engine.model import QueueSpec


def _pending(session: Session, job: Job) -> GoHeap:
    return GoHeap(session.plugins.task_less, (task for task in job.tasks if task.status is S.PENDING))


def _queues_of(session: Session, jobs: list[Job]) -> GoHeap:
    names = dict.fromkeys(job.queue for job in jobs)
    return GoHeap(session.plugins.queue_less, (session.state.queues[name] for name in names))


def _residents(session: Session, node: Node) -> list[Task]:
    return sorted((task for task in node.tasks if task.job in session.state.jobs), key=lambda task: task.uid)


def preempt(session: Session) -> None:
    jobs = session.valid_jobs()
    starving = [job for job in jobs if session.plugins.is_starving(job)]
    queues = _queues_of(session, jobs)
    while queues:
        queue = queues.pop()
        mine = [job for job in starving if job.queue == queue.name]
        between = GoHeap(session.plugins.job_less, mine)
        while between:
            _preempt_other_jobs(session, queue, between.pop())
        for job in mine:
            _preempt_within_job(session, queue, job)


def _preempt_other_jobs(session: Session, queue: QueueSpec, job: Job) -> None:
    statement, tasks = Statement(session), _pending(session, job)
    while session.plugins.is_starving(job) and tasks:
        _preempt(session, statement, queue, tasks.pop(), lambda one: one.job is not job and one.job.queue == queue.name)
    if session.plugins.is_pipelined(job):
        statement.commit("preempt", job)
    else:
        statement.discard()


def _preempt_within_job(session: Session, queue: QueueSpec, job: Job) -> None:
    tasks = _pending(session, job)
    while tasks:
        statement = Statement(session)
        if not _preempt(session, statement, queue, tasks.pop(), lambda one: one.job is job):
            statement.discard()
            return
        statement.commit("preempt", job)


def _preempt(session: Session, statement: Statement, queue: QueueSpec, task: Task, may: Callable[[Task], bool]) -> bool:
    if task.spec.never_preempts or not _is_eligible(session, task):
        return False
    session.looked_at.add(task.uid)
    possible = [node for node in session.state.nodes if not session.plugins.refuses_always(task, node)]
    for node in sorted(possible, key=lambda node: -session.plugins.score(task, node, possible)):
        candidates = [one for one in _residents(session, node) if _is_preemptable(task, one) and may(one)]
        victims = session.plugins.victims("preemptable", task, candidates)
        if at_most(task.request, plus(node.future, total(one.request for one in victims))) and _evict_until(
            session, statement, queue, task, node, victims
        ):
            return True
    return False


def _is_eligible(session: Session, task: Task) -> bool:
    """Whether the task may preempt: a task with a nominated node waits for its room."""
    if not task.spec.nominated_node:
        return True
    node = session.node_named(task.spec.nominated_node)
    if node is None:
        return False
    waits = any(one.status is S.RELEASING and one.spec.priority < task.spec.priority for one in node.tasks)
    return not waits and (task.uid not in session.looked_at or session.plugins.refuses(task, node))


def _is_preemptable(task: Task, one: Task) -> bool:
    is_equal_kind = one.is_best_effort or not task.is_best_effort
    return one.status in (S.BOUND, S.RUNNING) and one.spec.preemptable and is_equal_kind


def _evict_until(
    session: Session, statement: Statement, queue: QueueSpec, task: Task, node: Node, victims: list[Task]
) -> bool:
    def fits() -> bool:
        return session.plugins.is_allocatable(queue, task) and session.fits_on(task, node)

    mark = len(statement.steps)
    order = GoHeap(lambda left, right: session.plugins.victim_less(left, right, task.job), victims)
    while order and not fits():
        statement.evict(order.pop())
    if not fits():
        statement.discard(mark)
        return False
    if len(statement.steps) > mark:
        session.nominated[task.uid] = node.spec.name
    statement.promise(task, node)
    return True


def reclaim(session: Session) -> None:
    jobs: dict[str, GoHeap] = {}
    for job in session.valid_jobs():
        heap = jobs.setdefault(job.queue, GoHeap(session.plugins.job_less))
        if job.count(S.PENDING):
            heap.push(job)
    queues = _queues_of(session, session.valid_jobs())
    while queues:
        queue = queues.pop()
        if session.plugins.is_overused(queue) or not jobs[queue.name]:
            continue
        _reclaim_for(session, queue, jobs[queue.name].pop())
        queues.push(queue)


def _reclaim_for(session: Session, queue: QueueSpec, job: Job) -> None:
    statement, tasks = Statement(session), _pending(session, job)
    while session.plugins.is_starving(job) and tasks:
        task = tasks.pop()
        if not task.spec.never_preempts and session.plugins.is_preemptive(queue, task):
            any(_reclaim_on(session, statement, task, node) for node in session.state.nodes)
    if session.plugins.is_pipelined(job):
        statement.commit("reclaim", job)
    else:
        statement.discard()


def _reclaim_on(session: Session, statement: Statement, task: Task, node: Node) -> bool:
    if session.plugins.refuses_always(task, node):
        return False
    candidates = [one for one in _residents(session, node) if _is_reclaimable(session, task, one)]
    victims, room = session.plugins.victims("reclaimable", task, candidates), node.future
    if not candidates or not at_most(task.request, plus(room, total(one.request for one in victims))):
        return False
    order = GoHeap(lambda left, right: session.plugins.victim_less(left, right, task.job), victims)
    is_nominated = False
    while order and not at_most(task.request, room):
        victim = order.pop()
        statement.evict(victim)
        room, is_nominated = plus(room, victim.request), True
    if is_nominated:
        session.nominated[task.uid] = node.spec.name
    statement.promise(task, node)
    return True


def _is_reclaimable(session: Session, task: Task, one: Task) -> bool:
    queue = session.state.queues[one.job.queue]
    is_foreign = queue.name != task.job.queue and queue.reclaimable
    return is_foreign and one.status is S.RUNNING and one.spec.preemptable
