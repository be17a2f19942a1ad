"""The actions preempt and reclaim (`volcano-spec` §4), as Volcano does them."""

from collections.abc import Callable

from tests.engine.reference.amounts import at_most, plus, total
from tests.engine.reference.heaps import GoHeap
from tests.engine.reference.run import Run, Statement
from tests.engine.reference.world import Job, Node, S, Task

from hekla.engine.model import QueueSpec


def _pending(run: Run, job: Job) -> GoHeap:
    return GoHeap(run.voices.task_less, (task for task in job.tasks if task.status is S.PENDING))


def _queues_of(run: Run, jobs: list[Job]) -> GoHeap:
    names = dict.fromkeys(job.queue for job in jobs)
    return GoHeap(run.voices.queue_less, (run.world.queues[name] for name in names))


def _residents(run: Run, node: Node) -> list[Task]:
    return sorted((task for task in node.tasks if task.job in run.world.jobs), key=lambda task: task.uid)


def preempt(run: Run) -> None:
    jobs = run.valid_jobs()
    starving = [job for job in jobs if run.voices.is_starving(job)]
    queues = _queues_of(run, jobs)
    while queues:
        queue = queues.pop()
        mine = [job for job in starving if job.queue == queue.name]
        between = GoHeap(run.voices.job_less, mine)
        while between:
            _take_from_other_jobs(run, queue, between.pop())
        for job in mine:
            _take_inside(run, queue, job)


def _take_from_other_jobs(run: Run, queue: QueueSpec, job: Job) -> None:
    statement, tasks = Statement(run), _pending(run, job)
    while run.voices.is_starving(job) and tasks:
        _preempt(run, statement, queue, tasks.pop(), lambda one: one.job is not job and one.job.queue == queue.name)
    if run.voices.is_pipelined(job):
        statement.commit("preempt", job)
    else:
        statement.discard()


def _take_inside(run: Run, queue: QueueSpec, job: Job) -> None:
    tasks = _pending(run, job)
    while tasks:
        statement = Statement(run)
        if not _preempt(run, statement, queue, tasks.pop(), lambda one: one.job is job):
            statement.discard()
            return
        statement.commit("preempt", job)


def _preempt(run: Run, statement: Statement, queue: QueueSpec, task: Task, may: Callable[[Task], bool]) -> bool:
    if task.spec.never_preempts or not _is_eligible(run, task):
        return False
    run.looked_at.add(task.uid)
    possible = [node for node in run.world.nodes if not run.voices.refuses_for_good(task, node)]
    for node in sorted(possible, key=lambda node: -run.voices.score(task, node, possible)):
        candidates = [one for one in _residents(run, node) if _is_preemptable(task, one) and may(one)]
        victims = run.voices.victims("preemptable", task, candidates)
        if at_most(task.request, plus(node.future, total(one.request for one in victims))) and _evict_until(
            run, statement, queue, task, node, victims
        ):
            return True
    return False


def _is_eligible(run: Run, task: Task) -> bool:
    """A task that was given a node by earlier evictions waits for it."""
    if not task.spec.nominated_node:
        return True
    node = run.node_named(task.spec.nominated_node)
    if node is None:
        return False
    waits = any(one.status is S.RELEASING and one.spec.priority < task.spec.priority for one in node.tasks)
    return not waits and (task.uid not in run.looked_at or run.voices.refuses(task, node))


def _is_preemptable(task: Task, one: Task) -> bool:
    is_equal_kind = one.asks_for_nothing or not task.asks_for_nothing
    return one.status in (S.BOUND, S.RUNNING) and one.spec.preemptable and is_equal_kind


def _evict_until(run: Run, statement: Statement, queue: QueueSpec, task: Task, node: Node, victims: list[Task]) -> bool:
    def fits() -> bool:
        return run.voices.is_allocatable(queue, task) and run.may_hold(task, node)

    mark = len(statement.steps)
    order = GoHeap(lambda left, right: run.voices.victim_less(left, right, task.job), victims)
    while order and not fits():
        statement.evict(order.pop())
    if not fits():
        statement.discard(mark)
        return False
    if len(statement.steps) > mark:
        run.nominated[task.uid] = node.spec.name
    statement.promise(task, node)
    return True


def reclaim(run: Run) -> None:
    jobs: dict[str, GoHeap] = {}
    for job in run.valid_jobs():
        heap = jobs.setdefault(job.queue, GoHeap(run.voices.job_less))
        if job.count(S.PENDING):
            heap.push(job)
    queues = _queues_of(run, run.valid_jobs())
    while queues:
        queue = queues.pop()
        if run.voices.is_overused(queue) or not jobs[queue.name]:
            continue
        _reclaim_for(run, queue, jobs[queue.name].pop())
        queues.push(queue)


def _reclaim_for(run: Run, queue: QueueSpec, job: Job) -> None:
    statement, tasks = Statement(run), _pending(run, job)
    while run.voices.is_starving(job) and tasks:
        task = tasks.pop()
        if not task.spec.never_preempts and run.voices.is_preemptive(queue, task):
            any(_reclaim_on(run, statement, task, node) for node in run.world.nodes)
    if run.voices.is_pipelined(job):
        statement.commit("reclaim", job)
    else:
        statement.discard()


def _reclaim_on(run: Run, statement: Statement, task: Task, node: Node) -> bool:
    if run.voices.refuses_for_good(task, node):
        return False
    candidates = [one for one in _residents(run, node) if _is_reclaimable(run, task, one)]
    victims, room = run.voices.victims("reclaimable", task, candidates), node.future
    if not candidates or not at_most(task.request, plus(room, total(one.request for one in victims))):
        return False
    order = GoHeap(lambda left, right: run.voices.victim_less(left, right, task.job), victims)
    is_nominated = False
    while order and not at_most(task.request, room):
        victim = order.pop()
        statement.evict(victim)
        room, is_nominated = plus(room, victim.request), True
    if is_nominated:
        run.nominated[task.uid] = node.spec.name
    statement.promise(task, node)
    return True


def _is_reclaimable(run: Run, task: Task, one: Task) -> bool:
    queue = run.world.queues[one.job.queue]
    is_foreign = queue.name != task.job.queue and queue.reclaimable
    return is_foreign and one.status is S.RUNNING and one.spec.preemptable
