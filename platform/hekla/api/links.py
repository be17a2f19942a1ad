"""Links of the OpenAPI document: from the response that creates a resource to the operations on this resource.

A program that reads the document learns from them which value of the response belongs into which address.
"""

from collections.abc import Iterator
from typing import Any

Document = dict[str, Any]
_METHODS = ("get", "put", "post", "patch", "delete")


def add_links(result: Document, **_settings: Any) -> Document:  # noqa: ANN401  (a hook of drf-spectacular)
    """The document, with links in the response 201 of each POST to a list."""
    for path, operations in result["paths"].items():
        created = operations.get("post", {}).get("responses", {}).get("201")
        links = dict(_links(result, path, created)) if created else {}
        if links:
            created["links"] = links
    return result


def _links(document: Document, path: str, created: Document) -> Iterator[tuple[str, Document]]:
    """The operations on the resource that a POST to `path` creates, by operation id."""
    for address, operations in document["paths"].items():
        if not address.startswith(f"{path}/{{"):
            continue
        *outer, key = _parameters(address)
        pointer = _pointer(document, created, key)
        if pointer is None or outer != _parameters(path):
            continue
        values = {**{name: f"$request.path.{name}" for name in outer}, key: f"$response.body#{pointer}"}
        for method in _METHODS:
            if method in operations:
                name = operations[method]["operationId"]
                yield name, {"operationId": name, "parameters": values}


def _parameters(address: str) -> list[str]:
    """The names of the parameters in an address."""
    return [part[1:-1] for part in address.split("/") if part.startswith("{")]


def _pointer(document: Document, response: Document, key: str) -> str | None:
    """Where the response has the value of the path parameter `key`: in itself, or in one of its parts."""
    [content] = response["content"].values()
    properties = _resolved(document, content["schema"]).get("properties", {})
    name = "id" if key.endswith("_id") else key
    if name in properties:
        return f"/{name}"
    for part, schema in properties.items():
        inner, step = _resolved(document, schema), f"/{part}"
        if inner.get("type") == "array":
            inner, step = _resolved(document, inner["items"]), f"/{part}/0"
        if name in inner.get("properties", {}):
            return f"{step}/{name}"
    return None


def _resolved(document: Document, schema: Document) -> Document:
    """The schema, or the component that it refers to."""
    name = schema.get("$ref", "").rpartition("/")[2]
    found: Document = document["components"]["schemas"][name] if name else schema
    return found
