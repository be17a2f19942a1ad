"""Logs of pods, read from their backend for a person who may see them."""

import codecs
from dataclasses import dataclass

from django.conf import settings

from hekla.apps.accounts.models import User
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs.models import Pod
from hekla.backends.base import Backend, BackendError, LogChunk, PodKey, UnknownPod
from hekla.backends.opened import opened

LOOK_EVERY_SECONDS = 0.2
_CHUNK_BYTES = 64 * 1024
_Utf8 = codecs.getincrementaldecoder("utf-8")


@dataclass(frozen=True, slots=True)
class LogText:
    """Bytes `offset .. next_offset` of a log, as text. `is_full`: there may be more at once."""

    text: str
    offset: int
    next_offset: int
    complete: bool
    is_full: bool


def read(pod_id: int, user: User, offset: int) -> LogText:
    """The next piece of a pod's log. Raises NotFound for who may not see it."""
    pod = jobs.pod(pod_id, user)
    chunk = read_bytes(pod, offset=offset, limit=_CHUNK_BYTES)
    data = chunk.data if chunk.complete else _whole_characters(chunk.data)
    return LogText(
        text=data.decode(errors="replace"),
        offset=chunk.offset,
        next_offset=chunk.offset + len(data),
        complete=chunk.complete and len(chunk.data) < _CHUNK_BYTES,
        is_full=len(chunk.data) == _CHUNK_BYTES,
    )


def read_bytes(pod: Pod, *, offset: int, limit: int) -> LogChunk:
    """Up to `limit` bytes; none for a pod that has not begun, or whose backend cannot answer now."""
    key = PodKey(job=pod.job.uid.hex, task=pod.task, index=pod.index, attempt=pod.attempt)
    try:
        return _backend(pod).logs(key, offset=offset, limit=limit)
    except UnknownPod:
        return LogChunk(b"", offset, offset, complete=pod.is_final)
    except BackendError:
        return LogChunk(b"", offset, offset, complete=False)


def _backend(pod: Pod) -> Backend:
    cluster = pod.job.cluster
    return opened(
        cluster_id=cluster.pk,
        kind=cluster.kind,
        name=cluster.name,
        config=cluster.config,
        home=settings.HEKLA_HOME,
    )


def _whole_characters(data: bytes) -> bytes:
    """Without the beginning of a character at the end, whose rest was not written yet."""
    decoder = _Utf8(errors="replace")
    decoder.decode(data)
    begun, _ = decoder.getstate()
    return data[: len(data) - len(begun)]
