"""`python3 manage.py up`: everything that Hekla is, on one machine, from one command to one Ctrl-C.

Standard library only: this process stays for as long as Hekla runs, and should weigh little.
"""

from hekla.launcher.up.command import main

__all__ = ["main"]
