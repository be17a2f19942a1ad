"""Imports after the start of a process, of code that its first answers do not need.

Python locks each module by itself: two threads that import the same modules in another order can block each other, and
then one of them gets a module that is only half loaded. Here one thread at a time imports, and the others wait.
"""

import asyncio
from importlib import import_module
from threading import RLock
from types import ModuleType

_importing = RLock()
_loaded: dict[str, ModuleType] = {}


def import_alone(name: str) -> ModuleType:
    """Import a module. Raises ImportError, and what the module raises."""
    if name not in _loaded:
        with _importing:
            _loaded[name] = import_module(name)
    return _loaded[name]


async def import_in_thread(name: str) -> ModuleType:
    """Import a module without blocking the event loop. Raises ImportError, and what the module raises."""
    return _loaded[name] if name in _loaded else await asyncio.to_thread(import_alone, name)
