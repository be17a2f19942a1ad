"""Requests are counted by what they ask for, never by names of objects: there would be no end of figures."""

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
def test_a_path_leads_to_a_kind(path: str, kind: str) -> None:
    assert kind_of(path) == kind
