"""The settings of a job as names and values, so that jobs can be compared by what differs between them.

Options on the command line count as settings of their own: `--lr 0.1`, `--lr=0.1` and `lr=0.1` all are `lr`.
"""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

MAX_VALUE = 200
MAX_SETTINGS = 500
"""Of one job: a script of 64 KiB may have thousands of assignments."""
_MOST_TASKS, _MOST_SCRIPT = 16, 8192
_SHELLS = {"sh", "bash", "/bin/sh", "/bin/bash", "/usr/bin/bash"}
_OPTION = re.compile(r"-{1,2}([A-Za-z][\w.-]{0,60})(?:=(.*))?", re.DOTALL)
_ASSIGNMENT = re.compile(r"\+{0,2}([A-Za-z_][\w./-]{0,60})=(.*)", re.DOTALL)
_NUMBER = re.compile(r"-[\d.]")
_OF_SIMULATION = "HEKLA_SIM_"
"""Variables that describe what a simulated pod does are no settings of a program."""
_OF_JOB = ("queue", "priority")
_OF_TASK = ("image", "environment", "replicas")


def spec_parameters(document: Mapping[str, Any]) -> dict[str, str]:
    """The settings of this stored specification. With several tasks, those of a task begin with its name and a dot.

    The name, description and policies of a job are left out. Values are cut, and what a job has beyond 500 settings, 16
    tasks or the first 8192 characters of a script is left out.
    """
    found = {name: str(document[name]) for name in _OF_JOB if name in document}
    tasks = document.get("tasks", ())
    for task in tasks[:_MOST_TASKS]:
        prefix = f"{task.get('name', '')}." if len(tasks) > 1 else ""
        for name, value in _of_task(task):
            if len(found) == MAX_SETTINGS:
                return found
            found.setdefault(prefix + name, value[:MAX_VALUE])
    return found


def _of_task(task: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    words = _words([*task.get("command", ()), *task.get("args", ())])
    yield from _options(words)
    variables = task.get("env", {}).items()
    yield from ((name, str(value)) for name, value in variables if not name.startswith(_OF_SIMULATION))
    yield from ((name, str(task[name])) for name in _OF_TASK if task.get(name, "") != "")
    yield from ((name, str(value)) for name, value in task.get("resources", {}).items())


def _words(command: Sequence[str]) -> Sequence[str]:
    """The words of the command, and of the script if it is `sh -c SCRIPT`."""
    if len(command) > 2 and command[0] in _SHELLS and command[1] in {"-c", "-lc", "-ec"}:  # noqa: PLR2004
        script = command[2][:_MOST_SCRIPT]
        try:
            return shlex.split(script)
        except ValueError:  # an open quote
            return script.split()
    return command


def _options(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The options and assignments among the words, and the rest of the words as `command`."""
    rest, place = list[str](), 0
    while place < len(words):
        word, following = words[place], words[place + 1] if place + 1 < len(words) else "-"
        place += 1
        if option := _OPTION.fullmatch(word):
            if option[2] is None and (not following.startswith("-") or _NUMBER.match(following)):
                place += 1
                yield option[1], following
            else:
                yield option[1], option[2] if option[2] is not None else "yes"
        elif assignment := _ASSIGNMENT.fullmatch(word):
            yield assignment[1], assignment[2]
        else:
            rest.append(word)
    yield "command", shlex.join(rest)
