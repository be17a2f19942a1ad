"""Access to an API server: by stored credentials, an operator's kubeconfig, or the service account of our pod.

The official client reads the configuration, signs in and refreshes tokens. Our requests use its connection pool, a TLS
context and its authentication header.
"""

import asyncio
import threading
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from hekla.backends.kubernetes import keys, login
from hekla.backends.kubernetes.deadline import Deadline
from hekla.backends.kubernetes.login import Login
from hekla.backends.kubernetes.server_silence import ServerSilence

KUBECONFIGS = "kubeconfigs"
"""The subfolder of the data folder for operators' kubeconfig files."""
_SIGN_IN_SECONDS = 20
_RENEW_SECONDS = 10.0
"""Between two attempts to sign in again."""


class Access:
    """One API server and our login there. Any number of threads may use it at once.

    `sign_in` raises KeyRefused. `renewable`: a later call may return new credentials from files or a program.
    """

    def __init__(self, sign_in: Callable[[], Login], *, renewable: bool) -> None:
        self.silence = ServerSilence()
        self._sign_in, self._renewable = sign_in, renewable
        self._lock, self._deadline = threading.Lock(), Deadline(_SIGN_IN_SECONDS)
        self._login: Login | None = None
        self._was_rejected = False
        self._signed_in_at = 0.0

    @property
    def login(self) -> Login:
        """The present login; the first use signs in. Raises KeyRefused, BackendError."""
        return self._login or self._renew(lambda: False)

    def header(self) -> dict[str, str]:
        """The authentication header; empty if we use a certificate. Raises BackendError.

        May run a program or read a file if the token expires soon or was rejected.
        """
        if self._must_renew():
            self._renew(self._must_renew)
        return self.login.header()

    async def header_async(self) -> dict[str, str]:
        """As `header`, without blocking the event loop."""
        may_block = self._login is None or self._login.is_refresh_due or self._must_renew()
        return await asyncio.to_thread(self.header) if may_block else self.header()

    def reject(self, login: Login) -> None:
        """Record that the server rejected this login, so that one of the next requests signs in again."""
        if login is self._login:
            self._was_rejected = True

    def _must_renew(self) -> bool:
        is_time = time.monotonic() - self._signed_in_at >= _RENEW_SECONDS
        return self._was_rejected and self._renewable and is_time

    def _renew(self, is_needed: Callable[[], bool]) -> Login:
        with self._lock:
            if self._login is None or is_needed():
                self._signed_in_at = time.monotonic()
                self._login = self._deadline.run(self._sign_in)
                self._was_rejected = False
            return self._login


def find(home: Path, kubeconfig: str, key: str | None, context: str = "") -> Access:
    """Access by stored credentials (`key`), else by the file `kubeconfig`, else by the service account of our pod.

    Raises BackendError.
    """
    if key is not None:
        return from_key(keys.decode(key))
    return from_kubeconfig(home / KUBECONFIGS / kubeconfig, context) if kubeconfig else from_account()


def from_key(key: keys.ClusterKey) -> Access:
    """Access by stored credentials. Raises BackendError."""
    return _signed_in(Access(lambda: login.by_key(key), renewable=False))


def from_account() -> Access:
    """Access by the service account of our pod. Raises BackendError outside of a cluster."""
    return _signed_in(Access(login.by_account, renewable=True))


def from_kubeconfig(path: Path, context: str = "") -> Access:
    """Access by an operator's file. `context`: empty for its current one. Raises BackendError.

    A process signs in once per file, because a sign-in program may be slow.
    """
    try:
        changed_at = path.stat().st_mtime_ns
    except OSError:
        changed_at = 0
    return _signed_in(_by_file(path, context, changed_at))


@lru_cache(maxsize=64)
def _by_file(path: Path, context: str, changed_at: int) -> Access:  # noqa: ARG001  (part of the cache key)
    return Access(lambda: login.by_kubeconfig(path, context), renewable=True)


def _signed_in(access: Access) -> Access:
    access.header()
    return access
