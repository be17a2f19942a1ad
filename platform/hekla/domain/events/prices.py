"""Events of price lists. The subject is the list."""

from typing import Annotated

from pydantic import Field

from hekla.domain.events.base import Event, Name


class PriceListCreated(Event):
    """`begin`: the UTC hour from which on it is valid, as ISO text."""

    name: Name
    begin: Annotated[str, Field(max_length=40)]


class PriceListDeleted(Event):
    name: Name
