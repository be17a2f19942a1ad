"""Creates the virtual environment, installs the packages, and runs the command inside it.

Runs before anything is installed, so it uses only the standard library.
"""

from hekla.launcher.bootstrap.commands import main

__all__ = ["main"]
