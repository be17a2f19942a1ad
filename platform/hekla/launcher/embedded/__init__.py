"""PostgreSQL and Valkey as child processes, for a machine where nobody set up servers.

Both listen on a Unix socket in a folder that only the owner may enter, and on nothing else: no port is taken, and
no password is needed. Standard library only, so that the process that watches over them stays small.
"""

from hekla.launcher.embedded.child import spawn
from hekla.launcher.embedded.postgres import Postgres
from hekla.launcher.embedded.valkey import Valkey

__all__ = ["Postgres", "Valkey", "spawn"]
