"""A reference engine to compare the real one with: slow, simple loops over data classes, written from the rules.

It shares only the types of cluster states and policies with the real one. Where the two may differ, it follows Volcano.
"""

from tests.engine.reference.decide import decide

__all__ = ["decide"]
