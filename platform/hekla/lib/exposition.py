"""Prometheus gauges that are computed when they are scraped."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from prometheus_client.core import GaugeMetricFamily

Labels = Sequence[str]
"""The values of the labels, in the order of their names."""
_COMMON = (("cpu", "cpu_cores", "processor cores"), ("memory", "memory_bytes", "bytes of memory"))
_NOT_DEVICES = frozenset({"cpu", "memory", "pods"})
MOST_DEVICES = 50
"""Only so many kinds of devices of a cluster or queue, the first by name, have samples: nodes may report any names."""


def gauge(name: str, text: str, labels: Labels, found: Iterable[tuple[Labels, float]]) -> GaugeMetricFamily:
    """One family of gauges: a sample for each tuple of labels."""
    family = GaugeMetricFamily(name, text, labels=labels)
    for values, number in found:
        family.add_metric(values, number)
    return family


def resource_gauges(
    name: str, text: str, labels: Labels, found: Iterable[tuple[Labels, Mapping[str, float]]]
) -> Iterator[GaugeMetricFamily]:
    """Three families with one unit each: CPU cores, bytes of memory, and all other resources by name; without pods."""
    known = list(found)
    for resource, unit, words in _COMMON:
        samples = ((values, by_name.get(resource, 0.0)) for values, by_name in known)
        yield gauge(f"{name}_{unit}", f"{text}, {words}.", labels, samples)
    devices = (
        ((*values, device), number)
        for values, by_name in known
        for device, number in islice(_devices(by_name), MOST_DEVICES)
    )
    yield gauge(f"{name}_devices", f"{text}, other resources by name.", (*labels, "resource"), devices)


def _devices(by_name: Mapping[str, float]) -> Iterator[tuple[str, float]]:
    """The amounts of other resources, by name."""
    return ((name, amount) for name, amount in sorted(by_name.items()) if name not in _NOT_DEVICES)
