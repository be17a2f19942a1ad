"""How often a costly test repeats: examples of a property, kills, outages; a part of the whole number by default.

`HEKLA_EXAMPLES=1` repeats as often as a test names, `HEKLA_EXAMPLES=10` ten times as often.
"""

import os

_SHARE = float(os.environ.get("HEKLA_EXAMPLES", "0.05"))
EVERY = 1 if _SHARE >= 1 else 3
"""Of a long table or a long list of steps, a costly test tries every third entry by default."""


def examples(whole: int, least: int = 2) -> int:
    """The number of examples to try now, out of `whole`."""
    return max(least, round(whole * _SHARE))
