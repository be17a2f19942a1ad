"""MPIJobs (`kubeflow.org/v2beta1`, and the older `v1`): a launcher that starts ranks in the workers."""

from collections.abc import Collection, Mapping
from dataclasses import replace

from hekla.domain import frameworks
from hekla.domain.formats.fields import Fields
from hekla.domain.formats.kubeflow import Document, KubeflowKind
from hekla.domain.formats.reader import ManifestReader
from hekla.domain.formats.run_policy import CLEAN
from hekla.domain.jobspec import JobSpec
from hekla.domain.task_spec import TaskSpec
from hekla.domain.translation import gettext_noop, translate

_SSH = gettext_noop("the job plugin mpi connects the launcher and the workers.")
_OPEN_MPI = gettext_noop("the job plugin mpi writes hostfiles for both Open MPI and MPICH.")
_LAUNCHER = gettext_noop("the whole gang starts together.")


def _arguments(tasks: Collection[str]) -> Mapping[str, str] | None:
    return {"master": "launcher"} if "worker" in tasks else None


def _read(reading: ManifestReader, spec: Fields, document: Document) -> None:
    slots = spec.take("slotsPerWorker")
    if slots not in (None, 1) and document["plugins"]:
        reading.findings.origins["plugins.mpi.1"] = spec.at("slotsPerWorker")
        document["plugins"]["mpi"].append(f"--slots={slots}")
    reading.unless(spec, "sshAuthMountPath", (), translate(_SSH))
    reading.unless(spec, "mpiImplementation", ("OpenMPI", "MPICH"), translate(_OPEN_MPI))
    reading.unless(spec, "launcherCreationPolicy", ("AtStartup",), translate(_LAUNCHER))
    reading.unless(spec, "cleanPodPolicy", ("Running", "All"), translate(CLEAN))
    why = translate("a pod runs one container: the one named mpi, or the first.")
    reading.unless(spec, "mainContainer", ("mpi",), why)


def _write(spec: JobSpec, _roles: Mapping[str, TaskSpec]) -> Document:
    if "mpi" not in spec.plugins:
        return {}
    slots = frameworks.load_frameworks()["mpi"].read(spec.plugins["mpi"])[0]["slots"]
    return {} if slots == 1 else {"slotsPerWorker": slots}


_KIND = KubeflowKind(
    kind="MPIJob",
    replicas="mpiReplicaSpecs",
    roles=("Launcher", "Worker"),
    leaders=("Launcher",),
    restart="Never",
    leader_restart="OnFailure",
    container="mpi",
    plugin="mpi",
    main="Launcher",
    arguments=_arguments,
    read=_read,
    write=_write,
)
MPIJOB = replace(_KIND, backoff_limit=6).format(api_version="kubeflow.org/v2beta1")
MPIJOB_V1 = replace(_KIND, leader_restart="").format(word="mpijob-v1")
