"""Helpers that render the chart of `deploy/helm` with Helm."""

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
    """Helm failed; the message is its output."""


def full_values() -> Object:
    """Values that set every option, except the contents of files."""
    values: Object = yaml.safe_load(FULL.read_text())
    return values


def render(
    helm: Path, values: Mapping[str, Any], *more: str, release: str = "hekla", namespace: str = "console"
) -> list[Object]:
    """The objects of a release, including hooks. Raises Refused."""
    output = _rendered(helm, json.dumps(dict(values)), "template", release, str(CHART), "--namespace", namespace, *more)
    return [document for document in yaml.load_all(output, yaml.CSafeLoader) if document]


@cache
def _rendered(helm: Path, values: str, *arguments: str) -> str:
    """Cached: Helm takes half a second, and equal values give equal objects."""
    return run(helm, json.loads(values), *arguments)


def lint(helm: Path, values: Mapping[str, Any]) -> str:
    """The output of `helm lint` with these values. Raises Refused on warnings and errors."""
    return run(helm, values, "lint", "--strict", str(CHART))


def run(helm: Path, values: Mapping[str, Any], *arguments: str) -> str:
    """The output of a Helm command, with these values if there are any. Raises Refused."""
    with tempfile.TemporaryDirectory() as home:
        file = Path(home, "values.yaml")
        file.write_text(yaml.safe_dump(dict(values)))
        done = subprocess.run(
            [helm, *arguments, *([f"--values={file}"] if values else [])],
            env={"HOME": home, "PATH": os.environ["PATH"]},  # hides the caller's own kubeconfig
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode != 0:
        raise Refused(done.stdout + done.stderr)
    return done.stdout


def of_kind(objects: Sequence[Object], kind: str) -> list[Object]:
    """The objects of one kind, in order."""
    return [one for one in objects if one["kind"] == kind]


def object_named(objects: Sequence[Object], kind: str, name: str) -> Object:
    """The only object with this kind and name."""
    (found,) = [one for one in of_kind(objects, kind) if one["metadata"]["name"] == name]
    return found


def pods(objects: Sequence[Object]) -> dict[str, Object]:
    """The pod templates of all Deployments and Jobs, by the name of the container."""
    made = [one["spec"]["template"] for one in [*of_kind(objects, "Deployment"), *of_kind(objects, "Job")]]
    return {pod["spec"]["containers"][0]["name"]: pod for pod in made}


def environment(pod: Object) -> dict[str, Object]:
    """The environment variables of the only container, by name."""
    return {variable["name"]: variable for variable in pod["spec"]["containers"][0]["env"]}
