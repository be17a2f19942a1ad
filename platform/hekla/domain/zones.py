"""The zone and the region of a node or volume: the labels that Kubernetes and cloud providers set."""

from collections.abc import Mapping

_ZONE = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
_REGION = ("topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region")
LABELS = (_ZONE[0], _REGION[0], _ZONE[1], _REGION[1])
"""All of them; the older names come last."""


def zone(labels: Mapping[str, str]) -> str:
    """The zone; empty if there is none."""
    return _first(labels, _ZONE)


def region(labels: Mapping[str, str]) -> str:
    """The region; empty if there is none."""
    return _first(labels, _REGION)


def _first(labels: Mapping[str, str], names: tuple[str, ...]) -> str:
    for name in names:  # no generator: pages read thousands of nodes
        if found := labels.get(name):
            return found
    return ""
