"""JSON of the API."""

from collections.abc import Mapping
from typing import Any

import orjson
from rest_framework.renderers import JSONRenderer

from hekla.lib.text import escape_bidi_in_json


class ApiRenderer(JSONRenderer):
    """Escapes bidirectional controls: programs read the same text, and a terminal shows it as it is."""

    def render(
        self,
        data: Any,  # noqa: ANN401  (the data of any response)
        accepted_media_type: str | None = None,
        renderer_context: Mapping[str, Any] | None = None,
    ) -> bytes:
        """The document as UTF-8."""
        indent = self.get_indent(accepted_media_type or "", renderer_context or {})
        body: bytes = b"" if data is None or indent is not None else _compact(data)
        body = body or super().render(data, accepted_media_type, renderer_context)
        return body if body.isascii() else escape_bidi_in_json(body.decode()).encode()


_OPTIONS = orjson.OPT_NON_STR_KEYS | orjson.OPT_PASSTHROUGH_DATETIME


def _compact(data: Any) -> bytes:  # noqa: ANN401  (the data of any response)
    """The document without indentation; empty if it has a number of more than 64 bits, which the library refuses."""
    try:
        body = orjson.dumps(data, default=JSONRenderer.encoder_class().default, option=_OPTIONS)
    except TypeError:
        return b""
    return body if body.isascii() else body.replace(b"\xe2\x80\xa8", b"\\u2028").replace(b"\xe2\x80\xa9", b"\\u2029")
