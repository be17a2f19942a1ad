"""Parse credentials of clusters from forms and REST. Problems are reported at their fields."""

from collections.abc import Callable

from hekla.apps.clusters.services import Key
from hekla.backends.kubernetes import holders, keys
from hekla.backends.kubernetes.keys import KeyRefused
from hekla.domain.errors import Invalid, Problem

PARTS = ("server", "authority", "token")


def from_kubeconfig(text: str, *, field: str) -> keys.ClusterKey:
    """The credentials of the current context. Raises Invalid at `field`."""
    return _as_invalid(lambda: keys.from_kubeconfig(text), field=field, parts=())


def from_token(server: str, authority: str, token: str) -> keys.ClusterKey:
    """Credentials from a token. Raises Invalid at one of `PARTS`."""
    return _as_invalid(lambda: keys.from_token(server, authority, token), field="token", parts=PARTS)


def as_stored(found: keys.ClusterKey) -> Key:
    """The credentials in their stored form, with the parts that may be displayed."""
    return Key(found.encode(), found.server, holders.holder(found), holders.valid_until(found))


def _as_invalid(read: Callable[[], keys.ClusterKey], *, field: str, parts: tuple[str, ...]) -> keys.ClusterKey:
    try:
        return read()
    except KeyRefused as refusal:
        raise Invalid([Problem(refusal.part if refusal.part in parts else field, str(refusal))]) from None
