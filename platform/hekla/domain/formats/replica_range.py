"""A task whose manifest has a range of replicas: from `minReplicas` to `maxReplicas`."""

from hekla.domain.formats.reader import ManifestReader
from hekla.domain.translation import translate


def start_size(reading: ManifestReader, replicas: object, limits: tuple[object, object], target: str) -> object:
    """The number of workers at the start: `replicas`, within the limits. A person scales the job later."""
    size = 1 if replicas is None else replicas
    least, most = limits
    if isinstance(size, int) and isinstance(most, int):
        size = min(size, most)
    if isinstance(size, int) and isinstance(least, int):
        size = max(size, least)
    if replicas not in (None, size):
        message = translate("the job starts with {size} workers, within minReplicas and maxReplicas.", size=size)
        reading.findings.remark(target, message)
    return size
