"""Types of the texts and numbers in documents from users."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, GetJsonSchemaHandler
from pydantic_core import CoreSchema

from hekla.domain.translation import translate
from hekla.domain.validation import is_text, quote

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class SchemaKeywords:
    """Adds keywords to the JSON schema of a type: the rule that its validator checks, with a better message."""

    keywords: Mapping[str, Any]

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {**handler(schema), **self.keywords}


def is_label(text: str) -> str:
    """The text, if it has the form of a DNS label (the length is not checked). Raises ValueError."""
    if not _LABEL.fullmatch(text):
        raise ValueError(
            translate(
                "{text} is not a valid name. Use lowercase letters a–z, digits and hyphens. The first and last "
                "character must be a letter or digit.",
                text=quote(text),
            )
        )
    return text


def _label_or_nothing(text: str) -> str:
    return text and is_label(text)


def _number_as_text(value: object) -> object:
    """YAML and JSON write `cpu: 2` without quotes, so a number is accepted as text."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _printable(text: str) -> str:
    if not is_text(text):
        raise ValueError(translate("NUL characters and broken characters cannot be passed to a program."))
    return text


Text = Annotated[str, AfterValidator(_printable)]
Quantity = Annotated[Text, BeforeValidator(_number_as_text)]
LABEL_FORM = SchemaKeywords({"pattern": f"^{_LABEL.pattern}$"})
Label = Annotated[str, Field(min_length=1, max_length=63), AfterValidator(is_label), LABEL_FORM]
OptionalLabel = Annotated[
    str,
    Field(max_length=63),
    AfterValidator(_label_or_nothing),
    SchemaKeywords({"pattern": f"^({_LABEL.pattern})?$"}),
]
StrictInteger = Annotated[int, Field(strict=True)]
