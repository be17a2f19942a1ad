"""The parts that the facets of one cluster's backend share. Each is created once, at its first use by any thread."""

from hekla.backends.kind import BackendContext
from hekla.backends.kubernetes import access, names
from hekla.backends.kubernetes.api import Api
from hekla.backends.kubernetes.async_client import AsyncClient
from hekla.backends.kubernetes.budget_store import BudgetStore
from hekla.backends.kubernetes.claim_allocation import ClaimAllocation
from hekla.backends.kubernetes.config import KubernetesConfig
from hekla.backends.kubernetes.device_store import DeviceStore
from hekla.backends.kubernetes.hypernodes import HyperNodes
from hekla.backends.kubernetes.ingresses import Ingresses
from hekla.backends.kubernetes.layout import NamespaceLayout, PodLocator
from hekla.backends.kubernetes.manifests import Manifests
from hekla.backends.kubernetes.node_metrics import MetricsApi, NodeMetricsPoller, WithFallback
from hekla.backends.kubernetes.numa_topologies import NumaTopologies
from hekla.backends.kubernetes.pod_cache import PodCache
from hekla.backends.kubernetes.pod_creation import PodCreation
from hekla.backends.kubernetes.pod_deletion import PodDeletion
from hekla.backends.kubernetes.pod_metrics import PodMetricsPoller
from hekla.backends.kubernetes.priority_class_store import PriorityClassStore
from hekla.backends.kubernetes.priority_classes import PodPriorityClasses
from hekla.backends.kubernetes.prometheus import Prometheus
from hekla.backends.kubernetes.runtime_classes import RuntimeClassStore
from hekla.backends.kubernetes.spool import Spool
from hekla.backends.kubernetes.storage_store import StorageStore
from hekla.backends.kubernetes.tenant_namespaces import TenantNamespaces
from hekla.backends.kubernetes.volume_binding import VolumeBinding
from hekla.lib.once_property import once_property

_WATCHES = ("cache", "numa_topologies", "devices", "storage", "budgets", "runtime_classes", "priority_classes")


class KubernetesParts:
    """The parts of one backend. Those that use the server raise BackendError if the credentials cannot be read."""

    def __init__(self, config: KubernetesConfig, context: BackendContext) -> None:
        self.config, self.context, self.cluster = config, context, context.cluster
        self.spool = Spool(context.home / "kubernetes" / context.cluster / "logs")
        self.manifests, self.layout = Manifests(context.cluster, config), NamespaceLayout(config)
        self.ours = names.selector({names.CLUSTER: context.cluster})

    @once_property
    def access(self) -> access.Access:
        return access.find(self.context.home, self.config.kubeconfig, self.context.key, self.config.context)

    @once_property
    def api(self) -> Api:
        return Api(self.access)

    @once_property
    def client(self) -> AsyncClient:
        return AsyncClient(self.access)

    @once_property
    def cache(self) -> PodCache:
        return PodCache(self.api, self.layout.pods_path, self.ours, self.context.clock, self.layout.parse_pod)

    @once_property
    def hypernodes(self) -> HyperNodes:
        return HyperNodes(self.api)

    @once_property
    def numa_topologies(self) -> NumaTopologies:
        return NumaTopologies(self.api)

    @once_property
    def node_metrics(self) -> NodeMetricsPoller:
        api, found = MetricsApi(self.api, self.context.clock), self._prometheus()
        return NodeMetricsPoller(WithFallback(found, api) if found else api)

    @once_property
    def pod_metrics(self) -> PodMetricsPoller | None:
        found = self._prometheus()
        return PodMetricsPoller(found, self.cache.all) if found else None

    def _prometheus(self) -> Prometheus | None:
        """A client of the Prometheus of the cluster; each thread that measures has its own."""
        config = self.config.prometheus
        return Prometheus(config, self.context.clock, self.context.metrics_token) if config else None

    @once_property
    def devices(self) -> DeviceStore:
        return DeviceStore(self.api, self.layout, self.cache.wake, self._external)

    @once_property
    def budgets(self) -> BudgetStore:
        return BudgetStore(self.api, self.layout, self.cache.wake, self._external)

    @once_property
    def runtime_classes(self) -> RuntimeClassStore:
        return RuntimeClassStore(self.api, self.config.runtime_classes, self.cache.wake)

    @once_property
    def priority_classes(self) -> PriorityClassStore:
        return PriorityClassStore(self.api, self.cache.wake)

    @once_property
    def storage(self) -> StorageStore:
        return StorageStore(self.api, self.layout, self.cache.wake, self._external)

    @once_property
    def volume_binding(self) -> VolumeBinding:
        return VolumeBinding(self.client, self.storage, enabled=self.config.storage)

    @once_property
    def claim_allocation(self) -> ClaimAllocation:
        return ClaimAllocation(self.client, self.devices, self.layout)

    @once_property
    def locator(self) -> PodLocator:
        return PodLocator(self.layout, self.cache)

    @once_property
    def tenant_namespaces(self) -> TenantNamespaces:
        return TenantNamespaces(self.client, self.layout, self.cluster, self.config)

    @once_property
    def pod_creation(self) -> PodCreation:
        return PodCreation(
            self.client,
            self.cache,
            self.manifests,
            self.locator,
            self.tenant_namespaces,
            PodPriorityClasses(self.client, self.cluster, is_on=self.config.priority_classes),
            Ingresses(self.client, self.cluster, self.config.ingress),
            self.claim_allocation,
            self.volume_binding,
            lambda order: self.spool.has(order.key),
        )

    @once_property
    def pod_deletion(self) -> PodDeletion:
        return PodDeletion(self.client, self.cache, self.manifests, self.locator, self.tenant_namespaces, self.spool)

    @property
    def _external(self) -> tuple[str, ...]:
        """The namespaces of external pods."""
        return tuple(self.config.external_pods.namespaces) if self.config.external_pods else ()

    @property
    def fault(self) -> str:
        """The unexpected error that last ended a watch, if that was recently."""
        watches = (vars(self).get(part) for part in _WATCHES)
        return next((watch.fault for watch in watches if watch and watch.fault), "")

    def close(self) -> None:
        """End the watches, the requests and the connections."""
        for part in (*_WATCHES, "node_metrics", "pod_metrics", "client", "api"):
            if made := vars(self).get(part):
                made.close()
