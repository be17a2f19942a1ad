"""Health check of a cluster: whether its server answers and accepts our credentials, and what Hekla lacks there.

The check needs only permissions that Hekla has anyway. It asks the server first for all rules of the namespace
(SelfSubjectRulesReview), then, because some servers do not know all rules, for each permission that is not among them
(SelfSubjectAccessReview). A dry run shows whether the namespace exists.

The official client's typed objects are used here, except objects of the core API: their module alone takes 100 MB.
"""

import ssl
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property

import urllib3
from kubernetes.client import (
    ApisApi,
    AuthorizationV1Api,
    V1ResourceAttributes,
    V1ResourceRule,
    V1SelfSubjectAccessReview,
    V1SelfSubjectAccessReviewSpec,
    V1SelfSubjectRulesReview,
    V1SelfSubjectRulesReviewSpec,
    VersionApi,
)

from hekla.backends.base import BackendError, Health, HealthProblem
from hekla.backends.kind import BackendContext
from hekla.backends.kubernetes import access, device_store, hypernodes, node_metrics, numa_topologies
from hekla.backends.kubernetes.api import FORBIDDEN, NOT_FOUND, UNAUTHORIZED, Api, ApiError, Json
from hekla.backends.kubernetes.config import KubernetesConfig
from hekla.backends.kubernetes.hypernode_members import HyperNodeResolver
from hekla.backends.kubernetes.keys import KeyRefused
from hekla.backends.kubernetes.permissions import (
    DEVICES,
    FOR_GROUP_PRIORITIES,
    HYPERNODES,
    NODE_METRICS,
    NUMA_TOPOLOGIES,
    REQUIRED_FOR_QUEUES,
    ClusterPermission,
    permissions_for_external_pods,
    required_permissions,
)
from hekla.backends.kubernetes.prometheus import Prometheus

PATIENCE_SECONDS = 20.0
_TIMEOUT = urllib3.Timeout(connect=4.0, read=10.0)
_MAX_COMPARISONS = 500_000
"""Of names of nodes with expressions of HyperNode objects: about a second. With more, overlaps are not looked for."""
_SAMPLE = {"metadata": {"generateName": "hekla-dry-run-"}}


def look(config: KubernetesConfig, context: BackendContext) -> Health:
    """The health of the cluster, as its server answers now."""
    try:
        api = Api(access.find(context.home, config.kubeconfig, context.key, config.context), timeout=_TIMEOUT)
    except BackendError as error:
        return Health(HealthProblem.UNUSABLE, str(error))
    try:
        return replace(_Look(api, config).health(), metrics_fault=_metrics_fault(config, context))
    except BackendError as error:
        return Health(_trouble(error), str(error))
    finally:
        api.close()


def _metrics_fault(config: KubernetesConfig, context: BackendContext) -> str:
    """Why Prometheus does not answer; empty if it does, or none is configured."""
    if config.prometheus is None:
        return ""
    try:
        Prometheus(config.prometheus, context.clock, context.metrics_token).require_answer()
    except BackendError as error:
        return str(error)
    return ""


class _Look:
    """One check of one cluster, with a time limit."""

    def __init__(self, api: Api, config: KubernetesConfig) -> None:
        self._api, self._config = api, config
        self._reviews = AuthorizationV1Api(api.client)
        self._give_up_at = time.monotonic() + PATIENCE_SECONDS

    def health(self) -> Health:
        """The health. Raises BackendError if the server cannot be reached."""
        version = self._version()
        has_hypernodes = self._config.uses_hypernode_objects and hypernodes.GROUP in self._groups
        needless = set() if has_hypernodes else {HYPERNODES}
        if numa_topologies.GROUP not in self._groups:
            needless.update(NUMA_TOPOLOGIES)
        if self._config.prometheus or node_metrics.GROUP not in self._groups:
            needless.add(NODE_METRICS)
        if device_store.GROUP not in self._groups:
            needless.update(DEVICES)
        needed = (one for one in required_permissions(self._config) if one not in needless)
        missing = (*self._missing(self._config.namespace, needed), *self._missing_for_others())
        sees_machines = str(ClusterPermission("list", "nodes", everywhere=True)) not in missing
        nodes = self._nodes() if sees_machines else []
        sees_hypernodes = has_hypernodes and str(HYPERNODES) not in missing
        return Health(
            version=version,
            has_namespace=self._has_namespace(),
            missing=missing,
            kubelets=Counter(_kubelet(node) for node in nodes),
            topology_faults=self._topology_faults(nodes) if sees_hypernodes else (),
        )

    def _version(self) -> str:
        """The server's version; empty without permission to read it. Raises BackendError, also for bad credentials."""
        self._check_time()
        try:
            return str(self._api.call(VersionApi(self._api.client).get_code).git_version)[:100]
        except ApiError as error:
            if error.status != FORBIDDEN:
                raise
            return ""

    def _missing(self, namespace: str, needed: Iterable[ClusterPermission]) -> Iterator[str]:
        rules = self._rules(namespace)
        return (str(right) for right in needed if not right.is_granted(rules) and not self._may(right))

    def _missing_for_others(self) -> Iterator[str]:
        """Missing permissions in the namespaces of external pods, and for displayed queues."""
        if self._config.external_pods is None:
            return
        has_groups = "scheduling.volcano.sh" in self._groups
        claims = self._config.devices and "resource.k8s.io" in self._groups
        for namespace in self._config.external_pods.namespaces:
            needed = permissions_for_external_pods(
                namespace, has_groups=has_groups, claims_devices=claims, binds_volumes=self._config.storage
            )
            yield from self._missing(namespace, needed)
        if has_groups:
            yield from self._missing(self._config.namespace, FOR_GROUP_PRIORITIES)
        if self._config.external_pods.shows_queues and has_groups:
            yield from self._missing(self._config.namespace, REQUIRED_FOR_QUEUES)

    @cached_property
    def _groups(self) -> frozenset[str]:
        """The API groups of the server; none if it does not say."""
        self._check_time()
        try:
            found = self._api.call(ApisApi(self._api.client).get_api_versions)
        except ApiError:
            return frozenset()
        return frozenset(group.name for group in found.groups)

    def _rules(self, namespace: str) -> list[V1ResourceRule]:
        """The rules of the namespace that the server knows; none if it refuses to list them."""
        self._check_time()
        review = V1SelfSubjectRulesReview(spec=V1SelfSubjectRulesReviewSpec(namespace=namespace))
        try:
            answer = self._api.call(self._reviews.create_self_subject_rules_review, review)
        except ApiError:
            return []
        return answer.status.resource_rules if answer.status else []

    def _may(self, right: ClusterPermission) -> bool:
        self._check_time()
        resource, _, part = right.resource.partition("/")
        wanted = V1ResourceAttributes(
            verb=right.verb,
            group=right.group,
            resource=resource,
            subresource=part,
            name=right.name or None,
            namespace=None if right.everywhere else right.namespace or self._config.namespace,
        )
        review = V1SelfSubjectAccessReview(spec=V1SelfSubjectAccessReviewSpec(resource_attributes=wanted))
        answer = self._api.call(self._reviews.create_self_subject_access_review, review)
        return bool(answer.status and answer.status.allowed)

    def _has_namespace(self) -> bool | None:
        self._check_time()
        try:
            self._api.create(f"/api/v1/namespaces/{self._config.namespace}/configmaps?dryRun=All", _SAMPLE)
        except ApiError as error:
            return {NOT_FOUND: False, FORBIDDEN: None}.get(error.status, True)
        return True

    def _nodes(self) -> list[Json]:
        found: list[Json] = []
        for page in self._api.pages("/api/v1/nodes"):
            self._check_time()
            found += page.get("items") or ()
        return found

    def _topology_faults(self, nodes: Iterable[Json]) -> tuple[str, ...]:
        """What is wrong with HyperNode objects, for these nodes."""
        self._check_time()
        objects = hypernodes.list_objects(self._api)
        labels = {node["metadata"]["name"]: node["metadata"].get("labels") or {} for node in nodes}
        compared = labels if len(labels) * len(objects.expressions) <= _MAX_COMPARISONS else {}
        return tuple(map(str, HyperNodeResolver().resolve(objects, compared).faults))

    def _check_time(self) -> None:
        if time.monotonic() > self._give_up_at:
            raise BackendError(f"The API server takes longer than {PATIENCE_SECONDS:.0f} seconds to answer")


def _kubelet(node: Json) -> str:
    """The version of its kubelet."""
    return str(((node.get("status") or {}).get("nodeInfo") or {}).get("kubeletVersion") or "")[:100]


def _trouble(error: BackendError) -> HealthProblem:
    if isinstance(error, KeyRefused):
        return HealthProblem.UNUSABLE
    if isinstance(error, ApiError):
        return HealthProblem.NOT_LET_IN if error.status == UNAUTHORIZED else HealthProblem.REFUSED
    return HealthProblem.UNTRUSTED if _is_about_certificates(error) else HealthProblem.SILENT


def _is_about_certificates(error: BaseException | None) -> bool:
    """Whether the certificate of the server is not trusted, or the server rejected ours."""
    while error is not None:
        if isinstance(error, ssl.SSLError):
            return True
        error = error.__cause__ or error.__context__
    return False
