"""Lines of YAML text: where the paths of problems are, and where the text stops to be YAML."""

import re
from collections.abc import Iterator, Sequence

import yaml

from hekla.domain import yaml_text

_Loader: type = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DOCUMENT = re.compile(r"document\s(\d{1,5})\.?")
_INDEX = re.compile(r"\[(\d+)\]")


class YamlLines:
    """The places of a text's fields. A text that is not YAML, or too deep, has one place: that of the mistake."""

    def __init__(self, text: str) -> None:
        self._documents: Sequence[yaml.Node] = ()
        self._mistake = 1
        try:
            yaml_text.require_bounded(text)  # the nodes of text that is too deep overflow the stack of the process
            self._documents = [node for node in yaml.compose_all(text, Loader=_Loader) if node]
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
            self._mistake = mark.line + 1 if mark else 1
        except (RecursionError, ValueError):
            pass

    def line_of(self, path: str) -> int:
        """The line, from 1, of the field at a path such as `spec.tasks[0].name` or `tasks.0.name`.

        If the field is absent: the line of the nearest part that is there, in the document that has most of the path.
        """
        documents = self._documents
        if match := _DOCUMENT.match(path):
            documents, path = documents[int(match[1]) - 1 : int(match[1])] or documents, path[match.end() :]
        path = _INDEX.sub(r".\1", path)
        found = [max(_steps(node, path), key=lambda step: step[0]) for node in documents]
        return max(found, key=lambda step: step[0])[1] if found else self._mistake


def _steps(node: yaml.Node, path: str) -> Iterator[tuple[int, int]]:
    """The parts of the path that are there: each as the number of characters of the path up to it, and its line."""
    yield 0, node.start_mark.line + 1
    done = 0
    while path:
        step = _step(node, path)
        if step is None:
            return
        key, node, line = step
        done, path = done + len(key) + 1, path[len(key) + 1 :]
        yield done, line


def _step(node: yaml.Node, path: str) -> tuple[str, yaml.Node, int] | None:
    """The first part of the path, the node there, and its line."""
    if isinstance(node, yaml.SequenceNode):
        index = path.partition(".")[0]
        if not index.isdecimal() or int(index) >= len(node.value):
            return None
        return index, node.value[int(index)], node.value[int(index)].start_mark.line + 1
    if not isinstance(node, yaml.MappingNode):
        return None
    keys = ((str(key.value), key, value) for key, value in node.value if isinstance(key, yaml.ScalarNode))
    fitting = [one for one in keys if path.startswith(one[0]) and path[len(one[0]) : len(one[0]) + 1] in ("", ".")]
    if not fitting:
        return None
    name, key, value = max(fitting, key=lambda one: len(one[0]))  # a key may contain dots, such as nvidia.com/gpu
    return name, value, key.start_mark.line + 1
