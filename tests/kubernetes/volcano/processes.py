"""The real Volcano on the control plane of the tests: its controllers and its scheduler, without webhooks."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from tests.kubernetes.control_plane import ControlPlane, Part, RequestRefused
from tests.kubernetes.go_programs import FILES

_CONTROLLERS = ("job-controller", "queue-controller", "pg-controller")
_SCHEDULER = (
    "--schedule-period=200ms",
    "--cache-dumper=false",
    # Else a claim that waits for its first consumer needs a node that can attach volumes of this name.
    "--ignored-provisioners=kubernetes.io/no-provisioner",
)
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class Volcano:
    """The processes of Volcano. `programs`: the folder with the programs and Volcano's CRDs."""

    def __init__(self, plane: ControlPlane, programs: Path) -> None:
        self.plane = plane
        self._programs = programs
        self._parts = [self._controllers(), self._scheduler()]

    def start(self) -> None:
        """Apply the CRDs, start Volcano, and wait until it created its queues. Raises ControlPlaneFailed."""
        for file in sorted((self._programs / FILES).glob("*.yaml")):
            define(self.plane, file)
        for part in self._parts:
            part.start(self.plane.home)
        self.plane.wait_until(self._has_queues, 60.0)

    def stop(self) -> None:
        """Stop the processes; the CRDs stay."""
        for part in self._parts:
            part.stop()

    def stop_scheduler(self) -> None:
        """Stop the scheduler; the controllers keep running. No effect if it is stopped."""
        self._parts[1].stop()

    def start_scheduler(self) -> None:
        """Start the scheduler again."""
        self._parts[1].start(self.plane.home)

    def schedule_by(self, configuration: str, nodes: Mapping[str, str]) -> None:
        """Start the scheduler again with this configuration: YAML with actions and tiers.

        `nodes`: it knows only nodes with one of these labels.
        """
        file = self.plane.home / "volcano-scheduler.yaml"
        file.write_text(configuration)
        self.stop_scheduler()
        selected = (f"--node-selector={label}:{value}" for label, value in nodes.items())
        self._parts[1] = self._scheduler(f"--scheduler-conf={file}", *selected)
        self.start_scheduler()

    def log(self) -> str:
        """The ends of the processes' logs."""
        return "\n".join(part.tail() for part in self._parts)

    def _has_queues(self) -> bool:
        for part in self._parts:
            part.check()
        try:
            found = self.plane.request("GET", "/apis/scheduling.volcano.sh/v1beta1/queues")["items"]
        except RequestRefused:  # the server may not serve a new CRD yet
            return False
        return {"default", "root"} <= {one["metadata"]["name"] for one in found}

    def _controllers(self) -> Part:
        return self._part("controller-manager", "--controllers=" + ",".join(_CONTROLLERS))

    def _scheduler(self, *more: str) -> Part:
        return self._part("scheduler", *_SCHEDULER, *more)

    def _part(self, name: str, *more: str) -> Part:
        kubeconfig = self.plane.home / "kubeconfig"
        argv = [self._programs / name, f"--kubeconfig={kubeconfig}", "--leader-elect=false", *more]
        return Part(f"volcano-{name}", argv, self.plane.home / f"volcano-{name}.log")


def define(plane: ControlPlane, file: Path) -> None:
    """Apply the CRD in this file, unless it exists, and wait until the server knows it. Raises ControlPlaneFailed."""
    kind = yaml.load(file.read_text(), yaml.CSafeLoader)
    name = kind["metadata"]["name"]
    if name not in {one["metadata"]["name"] for one in plane.request("GET", _DEFINITIONS)["items"]}:
        plane.request("POST", _DEFINITIONS, kind)
    plane.wait_until(lambda: _is_established(plane.request("GET", f"{_DEFINITIONS}/{name}")))


def _is_established(definition: dict[str, Any]) -> bool:
    conditions = (definition.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)
