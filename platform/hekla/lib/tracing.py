"""Spans of OpenTelemetry, sent over HTTP to the collector that `configure` names.

Without one, every call returns at once. OpenTelemetry is imported at the first span: imports take time and memory, and
its thread that sends must start after a fork. A trace goes on in another process by its context, a short text.
"""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import Lock
from typing import Any

Attributes = Mapping[str, str | int | float | bool]
MAX_CONTEXT = 55
"""The length of a context: `00-TRACE-SPAN-FLAGS` in hexadecimal digits, as in the header `traceparent` of the W3C."""
_MOST_LETTERS = 200
_url = ""
_provider: Any = None
_lock = Lock()


def configure(url: str) -> None:
    """Send spans to this address of a collector (OTLP over HTTP); empty: make none. Earlier ones are sent first."""
    global _url, _provider
    flush()
    _url, _provider = url, None


def is_on() -> bool:
    """Whether spans are made."""
    return bool(_url)


def span(
    name: str, attributes: Attributes | None = None, *, needs_parent: bool = False
) -> AbstractContextManager[None]:
    """A span around the block, within the present one. `needs_parent`: only if there is a present one."""
    if not _url or (needs_parent and not current()):
        return nullcontext()
    return _span(name, attributes)


@contextmanager
def _span(name: str, attributes: Attributes | None) -> Iterator[None]:
    with _tracer().start_as_current_span(name[:_MOST_LETTERS], attributes=attributes):
        yield


def annotate(attributes: Attributes, *, name: str = "") -> None:
    """Add attributes to the present span, and rename it if there is a name."""
    if not _url:
        return
    from opentelemetry import trace  # noqa: PLC0415  (only with a collector)

    present = trace.get_current_span()
    present.set_attributes({**attributes})
    if name:
        present.update_name(name[:_MOST_LETTERS])


def current() -> str:
    """The context of the present span; empty without one."""
    if not _url:
        return ""
    from opentelemetry import trace  # noqa: PLC0415  (only with a collector)

    return _text(trace.get_current_span().get_span_context())


def emit(name: str, attributes: Attributes, *, parent: str, begin: int, end: int) -> str:
    """Make a span that is over, below the span of this context. `begin`, `end`: nanoseconds since 1970.

    Returns its own context; empty if `parent` is none.
    """
    if not _url or (around := _context(parent)) is None:
        return ""
    from opentelemetry import trace  # noqa: PLC0415  (only with a collector)

    made = _tracer().start_span(name[:_MOST_LETTERS], around, attributes=attributes, start_time=begin)
    made.end(end)
    return _text(trace.get_current_span(trace.set_span_in_context(made)).get_span_context())


def flush() -> None:
    """Send what was made so far."""
    if _provider is not None:
        _provider.force_flush()


def _tracer() -> Any:  # noqa: ANN401  (its type is imported late)
    global _provider  # noqa: PLW0603  (one for the process)
    with _lock:
        if _provider is None:
            _provider = _new_provider()
    return _provider.get_tracer("hekla")


def _new_provider() -> Any:  # noqa: ANN401  (its type is imported late)
    # Only with a collector: these imports take 0.2 s.
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

    found = TracerProvider(resource=Resource.create({"service.name": "hekla"}))
    found.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=_url, timeout=5)))
    return found


def _text(context: Any) -> str:  # noqa: ANN401  (its type is imported late)
    if not context.is_valid:
        return ""
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"


def _context(text: str) -> Any:  # noqa: ANN401  (its type is imported late)
    """The context that this text describes; None if it is none."""
    from opentelemetry import trace  # noqa: PLC0415  (only with a collector)

    try:
        _version, trace_id, span_id, flags = (int(part, 16) for part in text.split("-"))
    except ValueError:
        return None
    found = trace.SpanContext(trace_id, span_id, is_remote=True, trace_flags=trace.TraceFlags(flags))
    return trace.set_span_in_context(trace.NonRecordingSpan(found)) if found.is_valid else None
