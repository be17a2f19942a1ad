"""The kinds of objects that belong to a job beside its pods, and their API paths."""

SERVICES, POLICIES, CLAIMS, INGRESSES = "services", "networkpolicies", "persistentvolumeclaims", "ingresses"
ATTACHED = (SERVICES, POLICIES, CLAIMS, "configmaps", "secrets")
_CORE = "/api/v1"
_GROUPS = dict.fromkeys((POLICIES, INGRESSES), "/apis/networking.k8s.io/v1")


def resource_path(place: str, kind: str) -> str:
    """The API path of objects of this kind in the namespace with the path `place`."""
    return f"{_GROUPS.get(kind, _CORE)}{place.removeprefix(_CORE)}/{kind}"


def api_group(kind: str) -> str:
    """The API group of this kind, as in RBAC rules."""
    return _GROUPS[kind].split("/")[2] if kind in _GROUPS else ""
