"""The evidence of the idle rule in events of sessions and jobs."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from hekla.domain.events.base import Name


class IdleSignal(BaseModel):
    """A signal of `domain.idleness` when an idle session or job was judged. `limit`: None if it did not count.

    `most`: its highest amount while idle; None: not known. `active_at`: when it was active last.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    signal: Name
    limit: float | None = None
    most: float | None = None
    active_at: Name = ""


Evidence = Annotated[tuple[IdleSignal, ...], Field(max_length=16)]
