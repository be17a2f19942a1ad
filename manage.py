#!/usr/bin/env python3
"""Hekla's command: `python3 manage.py up` starts it, `python3 manage.py test` tests it.

Commands that Hekla does not have go to Django. Old Pythons must be able to parse this file, to print an error message.
"""

import os
import sys

OLDEST = (3, 11)
PLATFORM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "platform")

if __name__ == "__main__":
    if sys.version_info < OLDEST:
        sys.exit("Hekla needs Python %d.%d or later, and this is Python %d.%d." % (OLDEST + sys.version_info[:2]))  # noqa: UP031
    sys.path.insert(0, PLATFORM)
    from hekla.launcher.bootstrap import main

    main(sys.argv[1:])
