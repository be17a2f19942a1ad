"""The object that binds a pod to a node."""

from collections.abc import Mapping

from hekla.backends.kubernetes.api import Json


def binding(pod: str, uid: str, node: str, annotations: Mapping[str, str]) -> Json:
    """The server adds these annotations to the pod in the same write, before the kubelet sees it."""
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": pod, "uid": uid, "annotations": dict(annotations)},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }
