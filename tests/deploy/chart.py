"""The chart of `deploy/helm`, rendered by Helm itself."""

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from hekla.lib.checkout import CHECKOUT

CHART = CHECKOUT / "deploy" / "helm" / "hekla"
FULL = Path(__file__).with_name("full-values.yaml")
RULES = CHECKOUT / "deploy" / "prometheus" / "hekla.rules.yml"
DASHBOARD = CHECKOUT / "deploy" / "grafana" / "hekla.json"
MINIMAL: Mapping[str, Any] = {
    "publicUrl": "https://hekla.example.org",
    "existingSecret": "hekla",
    "image": {"repository": "registry.example.org/hekla"},
}
OF_FILES = (f"--set-file=metrics.rules.text={RULES}", f"--set-file=metrics.dashboard.text={DASHBOARD}")

Object = dict[str, Any]


class Refused(Exception):
    """Helm renders nothing, and why."""


def full() -> Object:
    """A value for whatever has one, each but those of files."""
    values: Object = yaml.safe_load(FULL.read_text())
    return values


def render(
    helm: Path, values: Mapping[str, Any], *more: str, release: str = "hekla", namespace: str = "console"
) -> list[Object]:
    """The objects of a release, hooks among them. Raises Refused."""
    told = _rendered(helm, json.dumps(dict(values)), "template", release, str(CHART), "--namespace", namespace, *more)
    return [document for document in yaml.load_all(told, yaml.CSafeLoader) if document]


@cache
def _rendered(helm: Path, values: str, *arguments: str) -> str:
    """The same values make the same objects: Helm takes half a second for them."""
    return run(helm, json.loads(values), *arguments)


def lint(helm: Path, values: Mapping[str, Any]) -> str:
    """What Helm says of the chart with these values. Raises Refused where that is a warning or worse."""
    return run(helm, values, "lint", "--strict", str(CHART))


def run(helm: Path, values: Mapping[str, Any], *arguments: str) -> str:
    """What a command of Helm says, with these values where there are any. Raises Refused."""
    with tempfile.TemporaryDirectory() as home:
        file = Path(home, "values.yaml")
        file.write_text(yaml.safe_dump(dict(values)))
        done = subprocess.run(
            [helm, *arguments, *([f"--values={file}"] if values else [])],
            env={"HOME": home, "PATH": os.environ["PATH"]},  # nothing of the caller's own clusters
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode != 0:
        raise Refused(done.stdout + done.stderr)
    return done.stdout


def of_kind(objects: Sequence[Object], kind: str) -> list[Object]:
    """Those of one kind, in their order."""
    return [one for one in objects if one["kind"] == kind]


def the(objects: Sequence[Object], kind: str, name: str) -> Object:
    """The only object of that kind and name."""
    (found,) = [one for one in of_kind(objects, kind) if one["metadata"]["name"] == name]
    return found


def pods(objects: Sequence[Object]) -> dict[str, Object]:
    """What the pods of each process are made from, and those of the Job, by the name of their container."""
    made = [one["spec"]["template"] for one in [*of_kind(objects, "Deployment"), *of_kind(objects, "Job")]]
    return {pod["spec"]["containers"][0]["name"]: pod for pod in made}


def environment(pod: Object) -> dict[str, Object]:
    """The variables of the only container, by name."""
    return {variable["name"]: variable for variable in pod["spec"]["containers"][0]["env"]}
