"""The runtime classes of a cluster, as its backend reports them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from hekla.apps.clusters import selectors as clusters
from hekla.domain.runtime_classes import RuntimeClassFacts

RuntimeClassesByName = Mapping[str, RuntimeClassFacts]


@dataclass
class RuntimeClassCache:
    """Those of one cluster by name, as last read."""

    by_name: RuntimeClassesByName = field(default_factory=dict)

    def read(self, cluster_id: int) -> bool:
        """Update from the database. Returns whether they changed."""
        before, self.by_name = self.by_name, clusters.runtime_classes([cluster_id]).get(cluster_id, {})
        return before != self.by_name
