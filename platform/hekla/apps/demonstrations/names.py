"""The names of simulated teams and people have a mark, so that nobody takes them for real ones."""

_MARK = " (simulated)"


def marked(name: str) -> str:
    """The name with the mark."""
    return f"{name}{_MARK}"


def unmarked(name: str) -> str:
    """The name without the mark, for places that already say that it is simulated."""
    return name.removesuffix(_MARK)
