"""Parsers of request bodies of limited size: JSON documents, and manifests and tables as raw bytes."""

import json
from collections.abc import Mapping
from typing import IO, Any

from django.utils.translation import gettext as _
from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser

from hekla.api.problems import TooLarge

MAX_BODY_BYTES = 1024 * 1024
_MAX_FILE_BYTES = 8 * MAX_BODY_BYTES
_LAST_EXACT = 2**53
"""Up to it, each integer is a float."""


class BoundedJSONParser(BaseParser):
    """Parses a body that is one JSON object, of at most `most` bytes."""

    media_type = "application/json"
    most = MAX_BODY_BYTES

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,  # noqa: ARG002
        parser_context: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """The object in the body. Raises ParseError, TooLarge."""
        try:
            body = read_bounded(stream, parser_context, self.most)
            document = json.loads(body, parse_constant=_refuse_constant, parse_float=_number)
            json.dumps(document, ensure_ascii=False).encode()  # refuses lone surrogates
        except (ValueError, RecursionError) as error:
            raise ParseError(_("The body is not valid JSON: %(error)s.") % {"error": error}) from error
        if not isinstance(document, dict):
            raise ParseError(_("The body must be a JSON object."))
        return document


class FileInJSONParser(BoundedJSONParser):
    """Parses a body that is one JSON object with a packed file in it. Only for operators: it takes memory."""

    most = _MAX_FILE_BYTES


class ManifestText(dict[str, bytes]):
    """A body that was sent as a manifest: its bytes under `text`."""


class ManifestParser(BaseParser):
    """Passes YAML on unparsed, under `text`. The view parses it with the right format."""

    media_type = "application/yaml"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,  # noqa: ARG002
        parser_context: Mapping[str, Any] | None = None,
    ) -> ManifestText:
        """The body as bytes. Raises TooLarge."""
        return ManifestText(text=read_bounded(stream, parser_context))


class TableBytes(dict[str, bytes]):
    """A body that was sent as a table: its bytes under `text`."""


class TableParser(BaseParser):
    """Passes CSV on unparsed, under `text`. The reader of the table detects the encoding."""

    media_type = "text/csv"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,  # noqa: ARG002
        parser_context: Mapping[str, Any] | None = None,
    ) -> TableBytes:
        """The body as bytes. Raises TooLarge."""
        return TableBytes(text=read_bounded(stream, parser_context))


def read_bounded(stream: IO[Any], context: Mapping[str, Any] | None, most: int = MAX_BODY_BYTES) -> bytes:
    """The whole body of a request. Raises TooLarge beyond `most` bytes, announced or real."""
    announced = (context or {})["request"].META.get("CONTENT_LENGTH") or 0
    if int(announced) > most:
        raise _too_large(int(announced), most)
    body: bytes = stream.read(most + 1)
    if len(body) > most:
        raise _too_large(len(body), most)
    return body


def _too_large(size: int, most: int) -> TooLarge:
    sentence = _("The body has %(size).1f MiB. The limit is %(most)d MiB. Do not put large data into the job itself.")
    return TooLarge(sentence % {"size": size / 1024**2, "most": most // 1024**2})


def _number(text: str) -> int | float:
    """A number with a point or an exponent. 24.0 is the integer 24, as in JSON Schema."""
    value = float(text)
    return int(value) if value.is_integer() and abs(value) <= _LAST_EXACT else value


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number of JSON")
