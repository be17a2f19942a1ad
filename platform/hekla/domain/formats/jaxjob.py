"""JAXJobs (`kubeflow.org/v1`): workers alike, the first of which coordinates."""

from hekla.domain.formats.roles import RoleKind

JAXJOB = RoleKind(
    kind="JAXJob",
    replicas="jaxReplicaSpecs",
    roles=("Worker",),
    leaders=(),
    restart="OnFailure",
    container="jax",
    plugin="jax",
    port="jaxjob-port",
).format()
