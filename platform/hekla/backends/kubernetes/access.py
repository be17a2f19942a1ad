"""How an API server is reached, and as whom: by a key, by an operator's kubeconfig, or by our pod's service account.

The official client reads the configuration, signs in and refreshes tokens. Our requests take from it what they need:
its connection pool, a TLS context, and the header that proves who we are.
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

KUBECONFIGS = "kubeconfigs"
"""The folder below the data folder in which an operator puts files."""
_SIGN_IN_SECONDS = 20
_RENEW_SECONDS = 10.0
"""Between two attempts to sign in anew."""


class Access:
    """One API server and who we are there. Any number of threads may use it at once.

    `sign_in` raises KeyRefused. `renewable`: it may give something else later, since it reads files or runs a program.
    """

    def __init__(self, sign_in: Callable[[], Login], *, renewable: bool) -> None:
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
        """The header that proves who we are; none where a certificate does. Raises BackendError.

        It may run a program or read a file, where the token expires soon or was rejected.
        """
        if self._must_renew():
            self._renew(self._must_renew)
        return self.login.header()

    async def header_async(self) -> dict[str, str]:
        """As `header`, without holding up the event loop."""
        may_block = self._login is None or self._login.is_refresh_due or self._must_renew()
        return await asyncio.to_thread(self.header) if may_block else self.header()

    def reject(self, login: Login) -> None:
        """The server did not accept this login: sign in anew before one of the next requests."""
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
    """By the key that the console keeps, where there is one; else by the file of that name below `home`; where none is
    named, as the pod that we are. Raises BackendError.
    """
    if key is not None:
        return from_key(keys.decode(key))
    return from_kubeconfig(home / KUBECONFIGS / kubeconfig, context) if kubeconfig else from_account()


def from_key(key: keys.ClusterKey) -> Access:
    """By a key. Raises BackendError."""
    return _signed_in(Access(lambda: login.by_key(key), renewable=False))


def from_account() -> Access:
    """As the pod that we are. Raises BackendError outside of a cluster."""
    return _signed_in(Access(login.by_account, renewable=True))


def from_kubeconfig(path: Path, context: str = "") -> Access:
    """By an operator's file, in its current context where none is named. Raises BackendError.

    A process signs in once by one file, however often it is opened: a program that signs in takes its time.
    """
    try:
        changed_at = path.stat().st_mtime_ns
    except OSError:
        changed_at = 0
    return _signed_in(_by_file(path, context, changed_at))


@lru_cache(maxsize=64)
def _by_file(path: Path, context: str, changed_at: int) -> Access:  # noqa: ARG001  (a changed file is another)
    return Access(lambda: login.by_kubeconfig(path, context), renewable=True)


def _signed_in(access: Access) -> Access:
    access.header()
    return access
