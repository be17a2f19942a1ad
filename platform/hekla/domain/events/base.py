"""The base of all event kinds, and how the log stores and parses them."""

import json
from collections.abc import Mapping
from enum import Enum
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, ValidationError

from hekla.domain.errors import Invalid, NotFound
from hekla.domain.model_errors import explain
from hekla.domain.translation import translate

MAX_MESSAGE = 2_000
MAX_DATA_BYTES = 32 * 1024

_Json = TypeVar("_Json")


def _storable(text: object) -> object:
    """Clean external text instead of refusing it, since the fact must be recorded and a database takes no NUL."""
    if not isinstance(text, str):
        return text
    text = text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")
    return f"{text[: MAX_MESSAGE - 1]}…" if len(text) > MAX_MESSAGE else text


def bounded(data: _Json) -> _Json:
    """The data, if it fits in a row of the log. Raises ValueError."""
    if len(json.dumps(data)) > MAX_DATA_BYTES:
        raise ValueError(translate("The event data exceeds {kib} KiB.", kib=MAX_DATA_BYTES // 1024))
    return data


class Vocabulary(Enum):
    """The vocabulary of a field whose values are translated for readers of the log."""

    PHASE = "phase"
    TENANT_ROLE = "tenant role"
    PLATFORM_ROLE = "platform role"
    GUEST_ROLE = "guest role"


Name = Annotated[str, Field(max_length=253)]
Message = Annotated[str, BeforeValidator(_storable), Field(max_length=MAX_MESSAGE)]
Data = Annotated[JsonValue, AfterValidator(bounded)]


class Event(BaseModel):
    """One event. `payload` gives what the log stores, `parse` reads it back."""

    # The validator of a kind is built for its first event: those of all kinds take longer than the rest of the import.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
    kind: ClassVar[str] = ""

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:  # noqa: ANN401
        super().__pydantic_init_subclass__(**kwargs)
        cls.kind = cls.__name__
        if not cls.kind.startswith("_"):
            _KINDS[cls.kind] = cls

    def payload(self) -> dict[str, Any]:
        """As JSON-like data without default values; `parse` reads it back."""
        return self.model_dump(mode="json", exclude_defaults=True)


_KINDS: dict[str, type[Event]] = {}


def vocabulary_of(kind: str, field: str) -> Vocabulary | None:
    """The vocabulary of a field; None if its values are free text."""
    model = _KINDS.get(kind)
    about = model.model_fields.get(field) if model else None
    return next((one for one in about.metadata if isinstance(one, Vocabulary)), None) if about else None


def fields_of(kind: str) -> tuple[str, ...]:
    """The names of the fields of a kind of event; none for unknown kinds."""
    model = _KINDS.get(kind)
    return tuple(model.model_fields) if model else ()


class UnknownEventKind(NotFound):
    """The log holds a kind of event that this version does not know."""

    code = "unknown_event"


def kinds() -> tuple[str, ...]:
    """The name of every kind of event."""
    return tuple(sorted(_KINDS))


def parse(kind: str, payload: Mapping[str, Any]) -> Event:
    """The event with this kind and payload. Raises UnknownEventKind, Invalid."""
    model = _KINDS.get(kind)
    if model is None:
        raise UnknownEventKind(translate("Unknown event kind “{kind}”.", kind=kind[:80]))
    try:
        return model.model_validate(payload)
    except ValidationError as error:
        raise Invalid(explain(error, model)) from error


class FieldChange(BaseModel):
    """The old and the new value of a field."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    old: Data = None
    new: Data = None


Changes = Annotated[dict[str, FieldChange], Field(max_length=128)]
