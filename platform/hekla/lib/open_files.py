"""The limit of open files, and so of sockets, of this process."""


def allow_most() -> None:
    """Raise the soft limit to the hard limit. Does nothing on systems without these limits."""
    try:
        import resource  # noqa: PLC0415  (not on Windows)
    except ImportError:
        return
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    except (OSError, ValueError):  # macOS can report no limit although it has one
        return
