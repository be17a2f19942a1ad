"""Garbage collection of long-running processes: rare, and never over the objects loaded at the start.

Reference counting frees nearly all garbage of a request or message at once. The rest is a few cycles, while a full
collection visits Django, the pages, the engine and all open sockets, and stops the process for 0.1 s or more. With
Python's defaults, one message to thousands of sockets triggers a full collection, because as many tasks start before
the first one ends. A controller that reads 100,000 pods would visit all of them repeatedly while it reads.
"""

import gc

_NEW_OBJECTS = 100_000
"""A young collection runs after this many more allocations than deallocations, some 10 MB."""


def settle() -> None:
    """Exclude all present objects from collections, and make collections rare."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS, 10, 10)


def settle_with_pages() -> None:
    """Load all pages, then `settle`."""
    from hekla.pages import registry  # noqa: PLC0415  (needs the models, and workers and beat have no pages)

    for _module in registry.load_all():
        pass
    settle()
