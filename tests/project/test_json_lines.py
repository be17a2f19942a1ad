"""Log records as lines of JSON."""

import json
import logging
import sys

from structlog.contextvars import bound_contextvars

from hekla.lib.json_lines import JsonLines
from hekla.project import logs


def line(message: str, *arguments: object, **facts: object) -> dict[str, object]:
    record = logging.LogRecord("hekla.test", logging.WARNING, __file__, 1, message, arguments, facts.pop("error", None))
    vars(record).update(facts)
    return json.loads(JsonLines().format(record))


def test_line_names_the_request_the_job_and_the_cluster() -> None:
    with bound_contextvars(request_id="r1", cluster="sim"):
        found = line("job %s failed", "a\nb", job="6f1c")
    wanted = {"level": "warning", "logger": "hekla.test", "message": "job a\nb failed", "request_id": "r1"}
    assert wanted.items() <= found.items()
    assert (found["cluster"], found["job"]) == ("sim", "6f1c")
    assert str(found["time"]).endswith("+00:00")


def test_line_is_bounded_and_has_the_traceback() -> None:
    try:
        raise ValueError("no such thing")
    except ValueError:
        found = line("x" * 20_000, error=sys.exc_info())
    assert len(str(found["message"])) == 10_000
    assert "ValueError: no such thing" in str(found["exception"])


def test_form_is_that_of_the_setting() -> None:
    before = logs.LOGGING["handlers"]["console"]["formatter"]
    try:
        logs.configure("json")
        assert logs.LOGGING["handlers"]["console"]["formatter"] == "json"
    finally:
        logs.configure(before)
