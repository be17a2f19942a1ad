"""The merged log of several pods: order and levels."""

import pytest
from tests.frontend.script_pages import page, shared_page, show, site
from tests.frontend.test_scripts import LOG, lines_of, send

__all__ = ["page", "shared_page", "site"]
pytestmark = [pytest.mark.browser, pytest.mark.slow]


def test_merged_log_is_in_order_of_time_with_levels(page):
    sockets = page.sockets
    show(page, LOG.replace('data-log="p1"', 'data-log="p1,p2" data-log-names="a,b"'))
    texts = [
        "2026-01-01 10:00:01 INFO one\n2026-01-01T10:00:03Z ERROR three\n  its trace\n",
        "2026-01-01 10:00:02,5 two\n",
    ]
    for number, text in enumerate(texts, start=1):
        send(sockets.wait_for(page, number), type="log", offset=0, next=len(text), text=text, complete=True)
    page.wait_for_selector(".log-line:nth-child(4)")
    assert [line.split()[-1] for line in lines_of(page)] == ["one", "two", "three", "trace"]
    levels = page.eval_on_selector_all(".log-line", "lines => lines.map(line => line.dataset.level ?? '')")
    assert levels == ["", "", "error", "error"]


def test_line_without_a_time_has_that_of_its_arrival(page):
    sockets = page.sockets
    log = LOG.replace('data-log="p1"', 'data-log="p1,p2" data-log-names="a,bb"')
    show(page, log, attributes='data-time-zone="Asia/Shanghai"')
    first = 1767261600_000  # 2026-01-01 10:00:00 UTC
    parts = [
        ("one\nthr", [[0, first + 1000], [1, first + 3000]]),
        ("2026-01-01 10:00:02 two\nfour\n", [[0, first + 9000], [1, 0]]),
    ]
    for number, (text, times) in enumerate(parts, start=1):
        more = {"offset": 0, "next": len(text), "text": text, "times": times}
        send(sockets.wait_for(page, number), type="log", complete=False, **more)
    more = {"offset": 7, "next": 10, "text": "ee\n", "times": [[0, first + 8000]]}
    send(sockets.wait_for(page, 1), type="log", complete=False, **more)
    page.wait_for_selector(".log-line:nth-child(4)")
    assert sorted(lines_of(page)) == sorted(
        ["a  18:00:01 | one", "bb          | 2026-01-01 10:00:02 two", "bb          | four", "a  18:00:03 | three"]
    )
