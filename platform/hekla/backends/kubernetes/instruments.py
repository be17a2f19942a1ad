"""A Prometheus counter of this process's requests to API servers."""

from prometheus_client import Counter

_REQUESTS = Counter("hekla_kubernetes_requests", "Requests to API servers.", ["method", "kind"])


def count(method: str, path: str) -> None:
    """Count one request by its kind, without names of objects: `…/namespaces/x/pods/y/log` counts as `pods/log`."""
    _REQUESTS.labels(method, kind_of(path)).inc()


def kind_of(path: str) -> str:
    """The kind of the objects at this API path, with the subresource if there is one."""
    words = path.partition("?")[0].strip("/").split("/")
    words = words[2:] if words[0] == "api" else words[3:]
    if words[:1] == ["namespaces"] and len(words) > 2:  # noqa: PLR2004  (its name, and what is in it)
        words = words[2:]
    return "/".join((words[:1] or ["version"]) + words[2:3])
