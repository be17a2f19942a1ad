"""The scheduler as a library: state and policy in, decisions and reasons out. numpy only; no Django, no I/O."""

from hekla.engine.cycle import cycle

__all__ = ["cycle"]
