"""What the configuration of a cluster lets pods of jobs ask of their nodes.

Runtime classes and ports of nodes belong to the whole cluster, so its configuration lists those for jobs. A secret, or
a claim to devices, belongs to its namespace: in its own, a tenant can name every one; a shared namespace may have those
of others.
"""

from hekla.backends.base import StartRefused
from hekla.backends.kubernetes.api import FORBIDDEN, ApiError
from hekla.backends.kubernetes.config import KubernetesConfig, PortRange
from hekla.domain.runtime_settings import RuntimeSettings


def check(settings: RuntimeSettings, config: KubernetesConfig, *, in_own_namespace: bool = False) -> None:
    """Raise StartRefused for a setting that the cluster does not allow."""
    if settings.runtime_class and settings.runtime_class not in config.runtime_classes:
        _refuse(f"The runtime class “{settings.runtime_class}” is", "runtime_classes")
    for secret in () if in_own_namespace else settings.pull_secrets:
        if secret not in config.pull_secrets:
            _refuse(f"The pull secret “{secret}” is", "pull_secrets")
    if settings.resource_claims and not config.devices:
        raise StartRefused("Jobs of this cluster claim no devices, unless its configuration sets “devices”.")
    for claim in () if in_own_namespace else settings.resource_claims:
        name = claim.resource_claim_name or claim.resource_claim_template_name
        if name not in config.resource_claims:
            _refuse(f"The claim or claim template “{name}” is", "resource_claims")
    for port in settings.host_ports:
        if not any(_contains(allowed, port.host_port) for allowed in config.host_ports):
            _refuse(f"Port {port.host_port} of the nodes is", "host_ports")
    if config.security_level == "restricted" and settings.security_context.run_as_user == 0:
        raise StartRefused("Pods of this cluster do not run as root, so run_as_user cannot be 0.")


def is_without_runtime_class(refusal: ApiError) -> bool:
    """Whether the server refuses a pod because it has no such runtime class."""
    return refusal.status == FORBIDDEN and "pod rejected: RuntimeClass" in str(refusal)


def _contains(allowed: PortRange, port: int) -> bool:
    first, _, last = allowed.partition("-")
    return int(first) <= port <= int(last or first)


def _refuse(beginning: str, option: str) -> None:
    raise StartRefused(
        f"{beginning} not for jobs of this cluster. Its configuration lists those that are as “{option}”."
    )
