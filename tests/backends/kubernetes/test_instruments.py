"""Request metrics: requests are counted by resource, never by the unbounded names of objects."""

import pytest

from hekla.backends.kubernetes.instruments import kind_of


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/api/v1/pods", "pods"),
        ("/api/v1/nodes", "nodes"),
        ("/api/v1/nodes/n1", "nodes"),
        ("/api/v1/namespaces", "namespaces"),
        ("/api/v1/namespaces/x", "namespaces"),
        ("/api/v1/namespaces/x/pods", "pods"),
        ("/api/v1/namespaces/x/pods/y", "pods"),
        ("/api/v1/namespaces/x/pods/y/binding", "pods/binding"),
        ("/api/v1/namespaces/x/pods/y/log?limitBytes=3", "pods/log"),
        ("/apis/policy/v1/namespaces/x/poddisruptionbudgets", "poddisruptionbudgets"),
        ("/version", "version"),
    ],
)
def test_resource_of_a_path(path: str, kind: str) -> None:
    assert kind_of(path) == kind
