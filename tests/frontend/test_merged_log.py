"""The merged log of several pods: order and levels."""

import pytest
from tests.frontend.test_scripts import LOG, lines_of, page, send, shared_page, show, site

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
