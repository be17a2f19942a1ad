"""The example of the help for `spark-submit`, and the PodGroup and the pods that Spark created for it.

They are recorded as sent by the client, without what is random and without environment variables, which contain
addresses. `test_spark_submit` compares them with those of the client now. To record them anew, remove the file and run:

    python -m pytest tests/controller/test_spark_submit.py::test_application_of_the_help_runs
"""

import json
import re
import shlex
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from textwrap import dedent
from typing import Any

from hekla.lib.checkout import CHECKOUT

Object = dict[str, Any]
FILE = Path(__file__).with_name("recorded.json")
NAMESPACE, SERVER = "team-a", "https://10.0.0.1:6443"
_HELP = CHECKOUT / "platform" / "help"
_BLOCK = re.compile(r"(?:^ {4}\S.*\n|^ {5,}.*\n)+", re.MULTILINE)
_UID, _APPLICATION, _RANDOM = "0" * 8 + "-0000-0000-0000-" + "0" * 12, "0" * 32, "0" * 16
_PATTERNS = (
    (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), _UID),
    (re.compile(r"\b[0-9a-f]{32}\b"), _APPLICATION),
    (re.compile(r"\b[0-9a-f]{16}\b"), _RANDOM),
)


def files(page: str = "submitting.md") -> dict[str, str]:
    """The files of the example by their names, which are in their first lines."""
    text = (_HELP / page).read_text(encoding="utf-8")
    blocks = [dedent(found[0]) for found in _BLOCK.finditer(text)]
    named = ((found[1], block) for block in blocks if (found := re.match(r"# (\S+)\n", block)))
    return {name: block for name, block in named if "spark" in block or "PodGroup" in block}


def arguments(page: str = "submitting.md") -> list[str]:
    """The arguments of `spark-submit` in the example."""
    text = (_HELP / page).read_text(encoding="utf-8")
    (command,) = re.findall(r"^    spark-submit ((?:.*\\\n)*.*)$", text, re.MULTILINE)
    return shlex.split(command.replace("\\\n", " "))


@cache
def recorded() -> Object:
    """The recording: the example, and the objects."""
    found: Object = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def document(objects: Iterable[Object], namespace: str) -> Object:
    """The recording of these objects: the example, and the objects in the order of their names."""
    in_order = sorted(objects, key=lambda one: (one["kind"], one["metadata"]["name"]))
    text = json.dumps([_without_environment(one) for one in in_order]).replace(namespace, NAMESPACE)
    for pattern, replacement in _PATTERNS:
        text = pattern.sub(replacement, text)
    return {"files": files(), "arguments": arguments(), "objects": json.loads(text)}


def _without_environment(one: Object) -> Object:
    if one["kind"] != "Pod":
        return one
    containers = [{**container, "env": []} for container in one["spec"]["containers"]]
    return {**one, "spec": {**one["spec"], "containers": containers}}


def objects(number: int, namespace: str, driver_uid: str = _UID) -> list[Object]:
    """The recorded objects, as those of another application in another namespace."""
    text = json.dumps(recorded()["objects"]).replace(NAMESPACE, namespace).replace(_UID, driver_uid)
    text = text.replace(_APPLICATION, f"{number:032x}").replace(_RANDOM, f"{number:016x}")
    found: list[Object] = json.loads(text)
    return found
