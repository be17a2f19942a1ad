"""Scores of nodes (`volcano-spec` §5.6), with Kubernetes' whole numbers."""

from tests.engine.reference.filters import disliked_taints
from tests.engine.reference.state import Node, Task

from hekla.engine.policy import PluginOption


def nodeorder(task: Task, node: Node, among: list[Node], option: PluginOption) -> float:
    least, most = option.arguments.get("leastrequested.weight", 1), option.arguments.get("mostrequested.weight", 0)
    balanced = option.arguments.get("balancedresource.weight", 1)
    by_room = least * _least(task, node) + most * _most(task, node) + balanced * _balanced(task, node)
    return by_room + option.arguments.get("tainttoleration.weight", 3) * _toleration_score(task, node, among)


def _least(task: Task, node: Node) -> int:
    return sum(max(0, of - after) * 100 // of for of, after in _after(task, node) if of) // 2


def _most(task: Task, node: Node) -> int:
    return sum(after * 100 // of for of, after in _after(task, node) if of and after <= of) // 2


def _toleration_score(task: Task, node: Node, among: list[Node]) -> int:
    """100 without untolerated soft taints, 0 for the node with the most."""
    worst = max(disliked_taints(task.spec, other.spec) for other in among)
    return 100 - 100 * disliked_taints(task.spec, node.spec) // worst if worst else 100


def _balanced(task: Task, node: Node) -> int:
    """75, plus half of the change in balance between used cpu and used memory."""
    before = [
        (of, used - task.request.get(name, 0)) for name, (of, used) in zip(_NAMES, _after(task, node), strict=True)
    ]
    return int(75 + (_evenness(_after(task, node)) - _evenness(before)) / 2)


_NAMES = ("cpu", "memory")


def _after(task: Task, node: Node) -> list[tuple[int, int]]:
    """(allocatable, used with this task) of cpu and of memory, in whole units."""
    have, used = node.spec.allocatable, node.expected
    return [(int(have.get(n, 0)), int(used.get(n, 0) + task.request.get(n, 0))) for n in _NAMES]


def _evenness(parts: list[tuple[int, int]]) -> int:
    cpu, memory = (min(used / of, 1.0) if of else 1.0 for of, used in parts)
    return int((1 - abs(cpu - memory) / 2) * 100 + 1e-9)


def binpack(task: Task, node: Node, option: PluginOption) -> float:
    weight = option.arguments.get("binpack.weight", 1)
    weights = {name: option.arguments.get(f"binpack.{name}", 1) for name in _NAMES}
    for name in filter(None, str(option.arguments.get("binpack.resources", "")).split(",")):
        weights[name] = option.arguments.get(f"binpack.resources.{name}", 1)
    requested = [name for name, much in task.request.items() if much > 0 and weights.get(name, 0) > 0]
    score = 0.0
    for name in requested:
        have, after = node.spec.allocatable.get(name, 0.0), node.used.get(name, 0.0) + task.request[name]
        if after > have:
            return 0.0
        score += weights[name] * after / have if have else 0.0
    return score / sum(weights[name] for name in requested) * 100 * weight if requested else 0.0
