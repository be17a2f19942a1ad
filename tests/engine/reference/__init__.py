"""A second engine that is slow and plain: loops over data classes, written from the rules, to hold the first one to.

It shares with the first only how a state and a policy are written down. It follows Volcano wherever the two may differ.
"""

from tests.engine.reference.decide import decide

__all__ = ["decide"]
