"""Runs one experiment in this process: `python -m hekla.simulation.lab` reads it from standard input, as JSON.

    {"workload": …, "policy": "…", "change": {…}}

On standard output come lines of JSON: `{"progress": 0.25}`, at last `{"result": …}` or `{"problem": "…"}`. The console
and the command line start it, so that it takes nothing from their processes, and can be stopped at any time.
"""

import sys

from hekla.simulation.lab.process import main

if __name__ == "__main__":
    sys.exit(main())
