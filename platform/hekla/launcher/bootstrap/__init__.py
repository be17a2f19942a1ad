"""From a bare Python to a running command: makes the virtual environment, fills it, and goes on inside it.

Runs before anything is installed, so the standard library is all there is.
"""

from hekla.launcher.bootstrap.commands import main

__all__ = ["main"]
