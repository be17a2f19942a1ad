"""Gauges of Prometheus that are told at the scrape, from what is known then."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from prometheus_client.core import GaugeMetricFamily

Labels = Sequence[str]
"""The values of the labels, in the order of their names."""
_OF_ALL = (("cpu", "cpu_cores", "processor cores"), ("memory", "memory_bytes", "bytes of memory"))
_NO_DEVICES = frozenset({"cpu", "memory", "pods"})


def gauge(name: str, text: str, labels: Labels, found: Iterable[tuple[Labels, float]]) -> GaugeMetricFamily:
    """One family."""
    family = GaugeMetricFamily(name, text, labels=labels)
    for values, number in found:
        family.add_metric(values, number)
    return family


def resource_gauges(
    name: str, text: str, labels: Labels, found: Iterable[tuple[Labels, Mapping[str, float]]]
) -> Iterator[GaugeMetricFamily]:
    """Three families, so that each has one unit: cores, bytes, and all other resources by name; pods are in none."""
    known = list(found)
    for resource, unit, words in _OF_ALL:
        samples = ((values, by_name.get(resource, 0.0)) for values, by_name in known)
        yield gauge(f"{name}_{unit}", f"{text}, {words}.", labels, samples)
    devices = (
        ((*values, device), number)
        for values, by_name in known
        for device, number in sorted(by_name.items())
        if device not in _NO_DEVICES
    )
    yield gauge(f"{name}_devices", f"{text}, other resources by name.", (*labels, "resource"), devices)
