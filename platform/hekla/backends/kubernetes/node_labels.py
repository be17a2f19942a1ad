"""The labels of a node, for choices that a start makes on it."""

from collections.abc import Mapping
from urllib.parse import quote

from hekla.backends.kubernetes.async_client import AsyncClient


async def labels_of(client: AsyncClient, node: str) -> Mapping[str, str]:
    """The labels of the node; none if it is gone. Raises BackendError."""
    found = await client.get(f"/api/v1/nodes?fieldSelector={quote(f'metadata.name={node}')}")
    return next((one["metadata"].get("labels") or {} for one in found["items"]), {})
