"""Logs of pods, read from their backend for a person who may see them."""

from django.conf import settings

from hekla.apps.accounts.models import User
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs.models import Pod
from hekla.backends import logs
from hekla.backends.base import Backend, LogChunk, PodKey
from hekla.backends.logs import LogText
from hekla.backends.opened import opened

LOOK_EVERY_SECONDS = 0.2
_CHUNK_BYTES = 64 * 1024


def read(pod_id: int, user: User, offset: int) -> LogText:
    """The next piece of a pod's log. Raises NotFound for who may not see it."""
    pod = jobs.pod(pod_id, user)
    return logs.read_text(_backend(pod), _key(pod), offset=offset, limit=_CHUNK_BYTES, ended=pod.is_final)


def read_bytes(pod: Pod, *, offset: int, limit: int) -> LogChunk:
    """Up to `limit` bytes; none for a pod that has not begun, or whose backend cannot answer now."""
    return logs.read_bytes(_backend(pod), _key(pod), offset=offset, limit=limit, ended=pod.is_final)


def _key(pod: Pod) -> PodKey:
    return PodKey(job=pod.job.uid.hex, task=pod.task, index=pod.index, attempt=pod.attempt)


def _backend(pod: Pod) -> Backend:
    cluster = pod.job.cluster
    return opened(
        cluster_id=cluster.pk,
        kind=cluster.kind,
        name=cluster.name,
        config=cluster.config,
        home=settings.HEKLA_HOME,
    )
