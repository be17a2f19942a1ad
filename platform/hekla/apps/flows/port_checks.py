"""Probes ports of pods: bounded in time and number, and never inside a transaction.

Only the first pod of a task is probed, at the address from its backend. Simulated pods have no network: their ports
never answer.
"""

import re
import socket
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from hekla.apps.flows.facts import facts_of, spec_of
from hekla.apps.flows.models import Flow, FlowStep
from hekla.apps.jobs.models import Pod
from hekla.domain.flow_progress import PortProbe, port_probes
from hekla.domain.flows import Probe
from hekla.domain.phases import PodPhase

MAX_CHECKS = 16
"""Checks per flow and pass."""
MAX_PARALLEL = 32
TIMEOUT_SECONDS = 1.0
_STATUS_LINE = re.compile(rb"HTTP/1\.[01] [23]\d\d[ \r]")
_MOST_BYTES = 4096


@dataclass(frozen=True, slots=True)
class PortCheck:
    """A port probe of a flow (by row id), with the address to connect to."""

    flow: int
    question: PortProbe
    probe: Probe
    address: str


def due_checks(flow: Flow, steps: Sequence[FlowStep], pods: Mapping[int, Sequence[Pod]]) -> list[PortCheck]:
    """The port checks that are due for a flow, at most MAX_CHECKS, of running pods with an address."""
    spec, by_name = spec_of(flow), {step.name: step for step in steps}
    wanted = {step.name: step for step in spec.steps}
    found = []
    for question in port_probes(spec, facts_of(flow, steps, pods))[:MAX_CHECKS]:
        probe = wanted[question.step].probes[question.probe]
        if address := _address(probe, by_name[question.target], pods):
            found.append(PortCheck(flow.pk, question, probe, address))
    return found


def run_checks(checks: Sequence[PortCheck]) -> dict[int, set[PortProbe]]:
    """The probes that succeed now, by flow (row id)."""
    found: dict[int, set[PortProbe]] = {}
    if checks:
        with ThreadPoolExecutor(max_workers=min(len(checks), MAX_PARALLEL)) as pool:
            for call, answer in zip(checks, pool.map(_is_answered, checks), strict=True):
                if answer:
                    found.setdefault(call.flow, set()).add(call.question)
    return found


def _is_answered(call: PortCheck) -> bool:
    return answers_at(call.address, call.probe)


def _address(probe: Probe, target: FlowStep, pods: Mapping[int, Sequence[Pod]]) -> str:
    """The address of the task's first pod while it is running; empty otherwise, and for simulated pods."""
    if target.job is None or target.job.cluster.is_simulated:
        return ""
    task = probe.task or target.spec["tasks"][0]["name"]
    found = (pod for pod in pods.get(target.job.pk, ()) if (pod.task, pod.index) == (task, 0) and not pod.stopping)
    return next((pod.address for pod in found if pod.phase == PodPhase.RUNNING), "")


def answers_at(address: str, probe: Probe) -> bool:
    """Whether the port accepts a connection; with a path, whether a GET is answered with status 2xx or 3xx."""
    assert probe.port is not None  # noqa: S101  (only port probes become checks)
    deadline = time.monotonic() + TIMEOUT_SECONDS
    try:
        with socket.create_connection((address, probe.port), timeout=TIMEOUT_SECONDS) as connection:
            return not probe.path or _is_well(connection, address, probe, deadline)
    except (OSError, ValueError):  # refused, unreachable or timed out: no answer
        return False


def _is_well(connection: socket.socket, address: str, probe: Probe, deadline: float) -> bool:
    headers = {"Host": f"{address}:{probe.port}", "Connection": "close", **probe.headers}
    lines = [f"GET {probe.path} HTTP/1.0", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    connection.sendall("\r\n".join(lines).encode())
    response = b""
    while b"\n" not in response and len(response) < _MOST_BYTES and (left := deadline - time.monotonic()) > 0:
        connection.settimeout(left)
        if not (more := connection.recv(_MOST_BYTES)):
            break
        response += more
    return bool(_STATUS_LINE.match(response))
