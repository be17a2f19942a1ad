"""The objects around the pods of a tenant: its namespace, and what bounds it there.

Where tenants share a namespace, their pods are kept from one another by a policy for each, and there is nothing else.
"""

from collections.abc import Mapping
from typing import Any

from hekla.backends.kubernetes import names
from hekla.backends.kubernetes.api import Json
from hekla.domain.resources import parse_quantity

ACCOUNT = "hekla-pods"
"""As whom the pods of a tenant run: it may do nothing, and its token is not given to them."""
QUOTA = POLICY = "hekla"
NOTHING = {"cpu": "0", "memory": "0", "ephemeral-storage": "0"}
"""A quota on one of these takes only pods that say how much they ask for."""
_GUARD = {"pod-security.kubernetes.io/enforce": "baseline"}
_RBAC = "rbac.authorization.k8s.io"
_OF_ACCOUNTS = "system:serviceaccount:"
_AS_THEY_ARE = ("pods",)


def namespace(name: str, labels: Mapping[str, str]) -> Json:
    """In which no pod has power over its machine; whoever runs the cluster may guard it more closely."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {**labels, **_GUARD}}}


def account(labels: Mapping[str, str]) -> Json:
    """As whom its pods run."""
    meta = {"name": ACCOUNT, "labels": dict(labels)}
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta, "automountServiceAccountToken": False}


def rights(role: str, user: str, labels: Mapping[str, str]) -> Json:
    """This user may do there what the role says: another user, or another role, is another object."""
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": f"hekla-{names.digest(f'{role} {user}')}", "labels": dict(labels)},
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": _RBAC, "kind": "User", "name": user}],
    }


def quota(resources: Mapping[str, str], labels: Mapping[str, str]) -> Json:
    """No more than this is held at once; what the engine counts by what pods ask for is counted so here too."""
    hard = {name if name in _AS_THEY_ARE else f"requests.{name}": text for name, text in resources.items()}
    meta = {"name": QUOTA, "labels": dict(labels)}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta, "spec": {"hard": hard}}


def policy(name: str, pods: Mapping[str, str], user: str, labels: Mapping[str, str]) -> Json:
    """Pods with these labels hear only each other and the console. Without labels: all of the namespace.

    Left out are pods that only those of their job are to reach: of several policies each lets somebody in.
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
    """The namespace of the account that we are, but for pods of tenants in it; a console elsewhere has none."""
    if not user.startswith(_OF_ACCOUNTS):
        return []
    home = user.removeprefix(_OF_ACCOUNTS).partition(":")[0]
    nobodys = {"matchExpressions": [{"key": names.TENANT, "operator": "DoesNotExist"}]}
    return [
        {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": home}}, "podSelector": nobodys},
    ]


def difference(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> Json:
    """The patch that makes the one the other; empty: they are the same."""
    change: Json = {name: None for name in found if name not in wanted}
    for name, value in wanted.items():
        was = found.get(name)
        if isinstance(value, dict) and isinstance(was, dict):
            change |= {name: inner} if (inner := difference(was, value)) else {}
        elif not _is_alike(name, was, value):
            change[name] = value
    return change


def _is_alike(name: str, was: object, value: object) -> bool:
    """The server writes amounts in its own way."""
    if isinstance(was, str) and isinstance(value, str):
        try:
            return parse_quantity(name, was) == parse_quantity(name, value)
        except ValueError:
            return was == value
    return was == value
