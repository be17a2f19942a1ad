"""`python3 manage.py up`: starts all of Hekla on one machine, until Ctrl-C.

Uses only the standard library: this process runs as long as Hekla does, and should need little memory.
"""

from hekla.launcher.up.command import main

__all__ = ["main"]
