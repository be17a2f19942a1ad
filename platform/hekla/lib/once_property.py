"""A cached property for objects that several threads share.

`functools.cached_property` computes a value in each thread that needs it first, since Python 3.12. Before, it held one
lock for all objects of a class, so that a slow one blocked the others.
"""

from collections.abc import Callable
from threading import RLock
from typing import Any, Generic, TypeVar, overload

T_co = TypeVar("T_co", covariant=True)
_LOCK = "_once_property_lock"


class once_property(Generic[T_co]):
    """A property that is computed once per object; other threads wait for the result. An error is not cached."""

    def __init__(self, compute: Callable[[Any], T_co]) -> None:
        self._compute, self._name = compute, compute.__name__
        self.__doc__ = compute.__doc__

    @overload
    def __get__(self, instance: None, owner: type[Any]) -> "once_property[T_co]": ...

    @overload
    def __get__(self, instance: object, owner: type[Any]) -> T_co: ...

    def __get__(self, instance: object | None, owner: type[Any]) -> "once_property[T_co] | T_co":
        """The value. Python calls this only until the value is an attribute of the object."""
        if instance is None:
            return self
        attributes = vars(instance)
        with attributes.setdefault(_LOCK, RLock()):
            if self._name not in attributes:
                attributes[self._name] = self._compute(instance)
            found: T_co = attributes[self._name]
            return found
