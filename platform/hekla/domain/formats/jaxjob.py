"""JAXJobs (`kubeflow.org/v1`): equal workers, the first of which coordinates."""

from hekla.domain.formats.kubeflow import KubeflowKind

JAXJOB = KubeflowKind(
    kind="JAXJob",
    replicas="jaxReplicaSpecs",
    roles=("Worker",),
    leaders=(),
    restart="OnFailure",
    container="jax",
    plugin="jax",
    port="jaxjob-port",
).format()
