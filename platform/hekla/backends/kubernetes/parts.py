"""What the facets of one cluster's backend share. Each part is made when it is first needed."""

from functools import cached_property

from hekla.backends.kind import BackendContext
from hekla.backends.kubernetes import access, names
from hekla.backends.kubernetes.api import Api
from hekla.backends.kubernetes.async_client import AsyncClient
from hekla.backends.kubernetes.cache import Cache
from hekla.backends.kubernetes.config import KubernetesConfig
from hekla.backends.kubernetes.ending import Ending
from hekla.backends.kubernetes.homes import Homes
from hekla.backends.kubernetes.ingresses import Ingresses
from hekla.backends.kubernetes.manifests import Manifests
from hekla.backends.kubernetes.places import Finder, Places
from hekla.backends.kubernetes.priorities import Priorities
from hekla.backends.kubernetes.spool import Spool
from hekla.backends.kubernetes.starting import Starting


class KubernetesParts:
    """Parts that reach the server raise BackendError where the cluster's credentials cannot be read."""

    def __init__(self, config: KubernetesConfig, context: BackendContext) -> None:
        self.config, self.context, self.cluster = config, context, context.cluster
        self.spool = Spool(context.home / "kubernetes" / context.cluster / "logs")
        self.manifests, self.places = Manifests(context.cluster, config), Places(config)
        self.ours = names.selector({names.CLUSTER: context.cluster})

    @cached_property
    def access(self) -> access.Access:
        return access.find(self.context.home, self.config.kubeconfig, self.context.key, self.config.context)

    @cached_property
    def api(self) -> Api:
        return Api(self.access)

    @cached_property
    def client(self) -> AsyncClient:
        return AsyncClient(self.access)

    @cached_property
    def cache(self) -> Cache:
        return Cache(self.api, self.places.pods, self.ours, self.context.clock, self.places.seen)

    @cached_property
    def finder(self) -> Finder:
        return Finder(self.places, self.cache)

    @cached_property
    def homes(self) -> Homes:
        return Homes(self.client, self.places, self.cluster, self.config.tenant_role)

    @cached_property
    def starting(self) -> Starting:
        return Starting(
            self.client,
            self.cache,
            self.manifests,
            self.finder,
            self.homes,
            Priorities(self.client, self.cluster, is_on=self.config.priority_classes),
            Ingresses(self.client, self.cluster, self.config.ingress),
            lambda order: self.spool.has(order.key),
        )

    @cached_property
    def ending(self) -> Ending:
        return Ending(self.client, self.cache, self.manifests, self.finder, self.homes, self.spool)

    def close(self) -> None:
        """End the watch and the requests. Connections may be in use by others, and close with their last user."""
        for part in ("cache", "client"):
            if made := vars(self).get(part):
                made.close()
