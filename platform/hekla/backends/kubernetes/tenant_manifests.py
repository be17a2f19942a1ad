"""Manifests of a tenant: its namespace, service account, permissions, quota and network policy.

If tenants share a namespace, each has only a network policy, which isolates its pods.
"""

from collections.abc import Mapping
from typing import Any

from hekla.backends.kubernetes import names
from hekla.backends.kubernetes.api import Json
from hekla.domain.resources import parse_quantity

ACCOUNT = "hekla-pods"
"""The service account of a tenant's pods: it has no permissions, and its token is not mounted."""
QUOTA = POLICY = "hekla"
NOTHING = {"cpu": "0", "memory": "0", "ephemeral-storage": "0"}
"""A quota on one of these admits only pods that state their requests."""
_GUARD = {"pod-security.kubernetes.io/enforce": "baseline"}
_RBAC = "rbac.authorization.k8s.io"
_OF_ACCOUNTS = "system:serviceaccount:"
_AS_THEY_ARE = ("pods",)


def namespace(name: str, labels: Mapping[str, str]) -> Json:
    """The namespace, with Pod Security `baseline`: no pod controls its node. Administrators may restrict it further."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {**labels, **_GUARD}}}


def service_account(labels: Mapping[str, str]) -> Json:
    """The service account of the tenant's pods."""
    meta = {"name": ACCOUNT, "labels": dict(labels)}
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta, "automountServiceAccountToken": False}


def role_binding(role: str, user: str, labels: Mapping[str, str]) -> Json:
    """The binding of the role to this user. Its name depends on both, so another user or role is another object."""
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": f"hekla-{names.digest(f'{role} {user}')}", "labels": dict(labels)},
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": _RBAC, "kind": "User", "name": user}],
    }


def resource_quota(resources: Mapping[str, str], labels: Mapping[str, str]) -> Json:
    """The quota on the total requests of the pods, counted like in the engine."""
    hard = {name if name in _AS_THEY_ARE else f"requests.{name}": text for name, text in resources.items()}
    meta = {"name": QUOTA, "labels": dict(labels)}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta, "spec": {"hard": hard}}


def network_policy(name: str, pods: Mapping[str, str], user: str, labels: Mapping[str, str]) -> Json:
    """The policy: pods with these labels accept connections only from each other and Hekla. Without labels: all pods.

    It excludes pods that accept only their own job (`names.CLOSED`), because policies are additive: each admits more.
    """
    alike = {"matchLabels": dict(pods)} if pods else {}
    is_open = {"matchExpressions": [{"key": names.CLOSED, "operator": "DoesNotExist"}]}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": name, "labels": dict(labels)},
        "spec": {
            "podSelector": {**alike, **is_open},
            "policyTypes": ["Ingress"],
            "ingress": [{"from": [{"podSelector": alike}, *_console(user)]}],
        },
    }


def _console(user: str) -> list[Json]:
    """The peers of Hekla: the namespace of our service account, without tenants' pods. None if Hekla runs elsewhere."""
    if not user.startswith(_OF_ACCOUNTS):
        return []
    own_namespace = user.removeprefix(_OF_ACCOUNTS).partition(":")[0]
    without_tenant = {"matchExpressions": [{"key": names.TENANT, "operator": "DoesNotExist"}]}
    return [
        {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": own_namespace}},
            "podSelector": without_tenant,
        },
    ]


def replacement_patch(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> Json:
    """The merge patch that turns `found` into `wanted`, with null for unwanted fields; empty if they are equal."""
    change: Json = {name: None for name in found if name not in wanted}
    for name, value in wanted.items():
        old = found.get(name)
        if isinstance(value, dict) and isinstance(old, dict):
            change |= {name: inner} if (inner := replacement_patch(old, value)) else {}
        elif not _is_equal(name, old, value):
            change[name] = value
    return change


def _is_equal(name: str, old: object, value: object) -> bool:
    """Whether the values are equal; the server may write a quantity in another form."""
    if isinstance(old, str) and isinstance(value, str):
        try:
            return parse_quantity(name, old) == parse_quantity(name, value)
        except ValueError:
            return old == value
    return old == value
