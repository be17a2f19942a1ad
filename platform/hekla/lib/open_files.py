"""How many files, and so sockets, a process may have open: as many as it may allow itself."""


def allow_most() -> None:
    """Raise the soft limit to the hard one. Where the system knows no such limits, nothing happens."""
    try:
        import resource  # noqa: PLC0415  (not on Windows)
    except ImportError:
        return
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    except (OSError, ValueError):  # macOS names no limit where it has one
        return
