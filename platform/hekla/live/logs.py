"""Logs of pods, read from their backend for a person who may see them."""

from dataclasses import replace

from django.conf import settings

from hekla.apps.accounts.models import User
from hekla.apps.clusters import selectors as clusters
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs.models import Pod
from hekla.backends import log_search, logs
from hekla.backends.base import Backend, PodKey
from hekla.backends.log_chunk import LogChunk
from hekla.backends.log_search import LogMatches, LogQuery
from hekla.backends.logs import LogText
from hekla.backends.pool import get_backend
from hekla.lib.text import show_bidi_controls, strip_control_codes, truncate

LOOK_EVERY_SECONDS = 0.2
_CHUNK_BYTES = 64 * 1024
_TAIL_BYTES = 16 * 1024
_LONGEST_LINE = 500


def read(pod_id: int, user: User, offset: int) -> LogText:
    """The next part of a pod's log. Raises NotFound without permission."""
    pod = jobs.pod(pod_id, user)
    found = logs.read_text(backend_of(pod), key_of(pod), offset=offset, limit=_CHUNK_BYTES, ended=pod.is_final)
    return replace(found, text=show_bidi_controls(found.text))


def read_bytes(pod: Pod, *, offset: int, limit: int) -> LogChunk:
    """Up to `limit` bytes of a pod's log. Empty if the pod has not started, or its backend does not answer now."""
    return logs.read_bytes(backend_of(pod), key_of(pod), offset=offset, limit=limit, ended=pod.is_final)


def search(pod_id: int, user: User, needle: LogQuery, *, offset: int, line: int, most: int) -> LogMatches:
    """The next matches in a pod's log. Raises NotFound without permission."""
    pod = jobs.pod(pod_id, user)
    return log_search.search_log(
        backend_of(pod), key_of(pod), needle, offset=offset, line=line, most=most, ended=pod.is_final
    )


def last_lines(pod: Pod, most: int) -> list[str]:
    """The last lines of a pod's log, without control codes, each of limited length."""
    text = logs.tail(backend_of(pod), key_of(pod), limit=_TAIL_BYTES, ended=pod.is_final)
    return [
        truncate(strip_control_codes(line.rpartition("\r")[2]), _LONGEST_LINE)
        for line in text.rstrip().split("\n")[-most:]
    ]


def key_of(pod: Pod) -> PodKey:
    """The key of a pod at its backend."""
    job = pod.job
    return PodKey(job=job.uid.hex, task=pod.task, index=pod.index, attempt=pod.attempt, tenant=job.tenant.slug)


def backend_of(pod: Pod) -> Backend:
    """The backend of the pod's cluster."""
    return get_backend(**clusters.backend_facts(pod.job.cluster), home=settings.HEKLA_HOME)
