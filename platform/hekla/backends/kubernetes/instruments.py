"""What this process asks of API servers, counted for whoever runs it."""

from prometheus_client import Counter

_REQUESTS = Counter("hekla_kubernetes_requests", "Requests to API servers.", ["method", "kind"])


def count(method: str, path: str) -> None:
    """One request. Names of objects are left out of it: of `…/namespaces/x/pods/y/log` it is `pods/log` that counts."""
    _REQUESTS.labels(method, kind_of(path)).inc()


def kind_of(path: str) -> str:
    """The kind of objects that a path of the API leads to, and what of them."""
    words = path.partition("?")[0].strip("/").split("/")
    words = words[2:] if words[0] == "api" else words[3:]
    if words[:1] == ["namespaces"] and len(words) > 2:  # noqa: PLR2004  (its name, and what is in it)
        words = words[2:]
    return "/".join((words[:1] or ["version"]) + words[2:3])
