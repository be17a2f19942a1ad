"""The number of examples for a costly property: a part of the whole number, because all of them take too long.

`HEKLA_EXAMPLES=1` tries all of them, `HEKLA_EXAMPLES=10` ten times as many.
"""

import os

_SHARE = float(os.environ.get("HEKLA_EXAMPLES", "0.25"))


def examples(whole: int) -> int:
    """The number of examples to try now, out of `whole`; at least a few."""
    return max(4, round(whole * _SHARE))
