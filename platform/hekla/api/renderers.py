"""JSON of the API."""

from collections.abc import Mapping
from typing import Any

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
        body: bytes = super().render(data, accepted_media_type, renderer_context)
        return body if body.isascii() else escape_bidi_in_json(body.decode()).encode()
