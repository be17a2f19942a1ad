"""How many examples a costly property is tried with: a part of the whole number, which would take its time each run.

`HEKLA_EXAMPLES=1` tries them all, `HEKLA_EXAMPLES=10` ten times as many.
"""

import os

_SHARE = float(os.environ.get("HEKLA_EXAMPLES", "0.25"))


def examples(whole: int) -> int:
    """Of `whole` examples, so many as are tried now; a few at least."""
    return max(4, round(whole * _SHARE))
