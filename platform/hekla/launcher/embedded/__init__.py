"""PostgreSQL and Valkey as child processes, for a machine without these servers.

Both listen only on a Unix socket in a folder that only the owner can access, so they need no port and no password.
The code uses only the standard library, so that the supervising process stays small.
"""

from hekla.launcher.embedded.child import spawn
from hekla.launcher.embedded.postgres import Postgres
from hekla.launcher.embedded.valkey import Valkey

__all__ = ["Postgres", "Valkey", "spawn"]
