"""Bodies, read up to a bound: JSON documents, and manifests as they are."""

import json
from collections.abc import Mapping
from typing import IO, Any

from django.utils.translation import gettext as _
from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser

from hekla.api.problems import TooLarge

MAX_BODY_BYTES = 1024 * 1024


class BoundedJSONParser(BaseParser):
    """One JSON object."""

    media_type = "application/json"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,  # noqa: ARG002
        parser_context: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """The object in the body. Raises ParseError, TooLarge."""
        try:
            document = json.loads(read_bounded(stream, parser_context), parse_constant=_refuse_constant)
            json.dumps(document, ensure_ascii=False).encode()  # halves of characters are no text
        except (ValueError, RecursionError) as error:
            raise ParseError(_("The body is not valid JSON: %(error)s.") % {"error": error}) from error
        if not isinstance(document, dict):
            raise ParseError(_("The body must be a JSON object."))
        return document


class ManifestText(dict[str, bytes]):
    """What was sent as a manifest: its `text`."""


class ManifestParser(BaseParser):
    """YAML, left as it was sent under `text`: whoever knows the format reads it."""

    media_type = "application/yaml"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,  # noqa: ARG002
        parser_context: Mapping[str, Any] | None = None,
    ) -> ManifestText:
        """The body. Raises TooLarge."""
        return ManifestText(text=read_bounded(stream, parser_context))


class TableBytes(dict[str, bytes]):
    """What was sent as a table: its `text`."""


class TableParser(BaseParser):
    """CSV, left as it was sent: in which encoding is for its reader to find."""

    media_type = "text/csv"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,  # noqa: ARG002
        parser_context: Mapping[str, Any] | None = None,
    ) -> TableBytes:
        """The body. Raises TooLarge."""
        return TableBytes(text=read_bounded(stream, parser_context))


def read_bounded(stream: IO[Any], context: Mapping[str, Any] | None) -> bytes:
    """The body. Raises TooLarge."""
    announced = (context or {})["request"].META.get("CONTENT_LENGTH") or 0
    if int(announced) > MAX_BODY_BYTES:
        raise _too_large(int(announced))
    body: bytes = stream.read(MAX_BODY_BYTES + 1)
    if len(body) > MAX_BODY_BYTES:
        raise _too_large(len(body))
    return body


def _too_large(size: int) -> TooLarge:
    sentence = _("The body has %(size).1f MiB. The limit is %(most)d MiB. Do not put large data into the job itself.")
    return TooLarge(sentence % {"size": size / 1024**2, "most": MAX_BODY_BYTES // 1024**2})


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number of JSON")
