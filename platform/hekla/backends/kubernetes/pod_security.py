"""The security context of pods, by the Pod Security level that the cluster's configuration sets.

Each pod has the runtime's default seccomp profile, cannot gain privileges, and has no capabilities but those that the
configuration adds. At the level `restricted` it does not run as root either. Within these bounds, a task chooses user
and groups of its pods.
"""

from hekla.backends.kubernetes.api import Json
from hekla.backends.kubernetes.config import KubernetesConfig
from hekla.domain.volumes import WORKING_DIR

ENFORCE = "pod-security.kubernetes.io/enforce"
_HOME = {"name": "HOME", "value": str(WORKING_DIR)}


def harden(spec: Json, config: KubernetesConfig) -> None:
    """Complete the security context of a pod's spec with one container."""
    (container,) = spec["containers"]
    capabilities: Json = {"drop": ["ALL"]}
    if config.capabilities:
        capabilities["add"] = list(config.capabilities)
    container["securityContext"] = {
        **container.get("securityContext", {}),
        "allowPrivilegeEscalation": False,
        "capabilities": capabilities,
    }
    spec["securityContext"] = {**spec.get("securityContext", {}), "seccompProfile": {"type": "RuntimeDefault"}}
    if config.security_level == "restricted":
        user = config.run_as_user
        usual = {"runAsUser": user, "runAsGroup": user, "fsGroup": user}
        spec["securityContext"] = {**usual, **spec["securityContext"], "runAsNonRoot": True}
        if all(variable["name"] != "HOME" for variable in container.get("env", ())):
            container.setdefault("env", []).append(_HOME)  # the home of an unknown user is `/`, which it cannot write
