"""Manifests of a tenant: its namespace, service account, permissions, quota and network policy.

If tenants share a namespace, each has only a network policy, which isolates its pods.
"""

from collections.abc import Iterable, Mapping
from ipaddress import ip_network
from typing import Any

from hekla.backends.kubernetes import names, pod_security
from hekla.backends.kubernetes.api import Json
from hekla.backends.kubernetes.config import METADATA, KubernetesConfig, is_within
from hekla.domain.resources import parse_quantity

ACCOUNT = "hekla-pods"
"""The service account of a tenant's pods: it has no permissions, and its token is not mounted."""
QUOTA = POLICY = "hekla"
NOTHING = {"cpu": "0", "memory": "0", "ephemeral-storage": "0"}
"""A quota on one of these admits only pods that state their requests."""
_NAME_SERVER_PORTS: list[Json] = [{"protocol": protocol, "port": 53} for protocol in ("UDP", "TCP")]
_NAME_SERVERS: Json = {
    "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}},
    "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}},
}
"""The pods of the cluster's name server: CoreDNS has the label of its predecessor."""
_PRIVATE = (
    *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "172.16.0.0/12", "192.0.0.0/24", "192.168.0.0/16"),
    *("198.18.0.0/15", "224.0.0.0/3", "::/8", "64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "fc00::/7", "ff00::/8"),
)
"""Addresses that are not public, and those in which an IPv6 address contains one of IPv4."""
_RBAC = "rbac.authorization.k8s.io"
_OF_ACCOUNTS = "system:serviceaccount:"
_AS_THEY_ARE = ("pods",)


def namespace(name: str, labels: Mapping[str, str], security_level: str) -> Json:
    """The namespace, which admits only pods of this Pod Security level."""
    labels = {**labels, pod_security.ENFORCE: security_level}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


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


def egress_policy(
    name: str, pods: Mapping[str, str], config: KubernetesConfig, labels: Mapping[str, str], user: str = ""
) -> Json:
    """The policy for connections that pods with these labels open. Without labels: all pods of the namespace.

    `user`: our own at this cluster, from which the pods of the console follow. They reach name servers and what the
    configuration opens; the policy of their job (`job_policy`) adds its pods. Hekla's own stores and the metadata
    service of a cloud are not public addresses, so pods reach them only if the configuration opens these.
    """
    alike: Json = {"matchLabels": dict(pods)} if pods else {}
    servers = [_NAME_SERVERS, *({"ipBlock": {"cidr": servers}} for servers in config.name_servers)]
    opened = [{"ipBlock": block} for block in _blocks(config)]
    opened += [{"podSelector": alike}] if config.egress_to_tenant else []
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": name, "labels": dict(labels)},
        "spec": {
            "podSelector": alike,
            "policyTypes": ["Egress"],
            "egress": [
                {"to": servers, "ports": _NAME_SERVER_PORTS},
                *([{"to": opened}] if opened else []),
                *_console_egress(config, user),
            ],
        },
    }


def job_policy(name: str, labels: Mapping[str, str], *, is_closed: bool) -> Json:
    """The policy by which the pods with these labels, those of a job, may connect to each other.

    `is_closed`: they accept connections from each other only.
    """
    ours: Json = {"podSelector": {"matchLabels": dict(labels)}}
    closed = {"ingress": [{"from": [ours]}]} if is_closed else {}
    types = ["Ingress", "Egress"] if is_closed else ["Egress"]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": name, "labels": dict(labels)},
        "spec": {**ours, "policyTypes": types, "egress": [{"to": [ours]}], **closed},
    }


def _blocks(config: KubernetesConfig) -> list[Json]:
    public = [_block(whole, [*METADATA, *_PRIVATE]) for whole in ("0.0.0.0/0", "::/0")] if config.internet else []
    return [*public, *(_block(opened, METADATA) for opened in config.egress)]


def _block(whole: str, closed: Iterable[str]) -> Json:
    """A range of addresses without the closed ones that it contains."""
    network = ip_network(whole)
    inside = [one for one in closed if is_within(ip_network(one), network)]
    return {"cidr": whole, **({"except": inside} if inside else {})}


def _console_egress(config: KubernetesConfig, user: str) -> list[Json]:
    """The rule for the console, and nothing beside its port; none if pods do not reach it, or not by such a rule."""
    console = config.console
    if console is None:
        return []
    peers = [{"ipBlock": _block(servers, METADATA)} for servers in console.addresses] or _console(user)
    return [{"to": peers, "ports": [{"protocol": "TCP", "port": console.port}]}] if peers else []


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
