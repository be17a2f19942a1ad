"""The host key of the console: the same in all its processes, derived from its secret key, and stored nowhere.

Clients do not remember it. `hekla ssh-proxy` gets the public key on a connection that is authenticated already, and
writes it for `ssh` before each connection: after a new secret key, nobody has to confirm anything.
"""

from functools import cache

import asyncssh
from django.conf import settings

from hekla.lib.encryption import derive
from hekla.lib.sshkeys import KeyPair, key_pair


@cache
def _pair(secret: str) -> KeyPair:
    return key_pair(derive(secret, "ssh host key"), "hekla")


def public_key() -> str:
    """The public key, as in a file of known hosts after the name of the host."""
    return " ".join(_pair(settings.SECRET_KEY).public.split()[:2])


def private_key() -> asyncssh.SSHKey:
    """The private key."""
    return asyncssh.import_private_key(_pair(settings.SECRET_KEY).private)
