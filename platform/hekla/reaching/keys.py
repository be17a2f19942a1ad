"""Keys to clusters as people give them, read by those who know such keys: problems are told at their fields."""

from collections.abc import Callable

from hekla.apps.clusters.services import Key
from hekla.backends.kubernetes import holders, keys
from hekla.backends.kubernetes.keys import KeyRefused
from hekla.domain.errors import Invalid, Problem

PARTS = ("server", "authority", "token")


def of_kubeconfig(text: str, *, field: str) -> keys.Key:
    """The key in its current context. Raises Invalid at `field`."""
    return _told(lambda: keys.of_kubeconfig(text), field=field, parts=())


def of_token(server: str, authority: str, token: str) -> keys.Key:
    """The key that such a token is. Raises Invalid at `PARTS`."""
    return _told(lambda: keys.of_token(server, authority, token), field="token", parts=PARTS)


def kept(found: keys.Key) -> Key:
    """As it is kept, with what may be shown of it."""
    return Key(found.text(), found.server, holders.holder(found), holders.valid_until(found))


def _told(read: Callable[[], keys.Key], *, field: str, parts: tuple[str, ...]) -> keys.Key:
    try:
        return read()
    except KeyRefused as refusal:
        raise Invalid([Problem(refusal.part if refusal.part in parts else field, str(refusal))]) from None
