"""The scripts in a real Chromium without a console: the tests answer the requests."""

import gzip
import json

import pytest
from tests.frontend.script_pages import own_page, page, shared_page, show, site, until

__all__ = ["own_page", "page", "shared_page", "site"]

LOG = """<section data-log="p1"><input data-log-search><span data-log-found></span>
<button data-log-previous></button><button data-log-next></button><button data-log-wrap></button>
<button data-log-copy></button><div class="log-box" data-log-box tabindex="0"><p data-log-older hidden></p>
<div class="log-lines" data-log-lines></div></div><span data-log-state></span><button data-log-follow hidden></button>
</section>"""

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def scroll_up_until(page, selector):
    """Turn the mouse wheel until the selector is visible. At first, the browser may not have drawn the page yet."""
    for _ in range(100):
        page.mouse.wheel(0, -2000)
        page.wait_for_timeout(100)
        if page.is_visible(selector):
            return
    raise AssertionError(selector)


def send(socket, **message):
    socket.send(json.dumps(message))


LIVE = 'data-live-query="view=job&amp;uid=1" data-live-since="7"'


def test_fragment_replaces_its_element_and_keeps_focus_and_input(page):
    sockets = page.sockets
    body = """<section id="job" data-live><b>Pending</b><input id="typed" value="">
    <details id="more"><summary>m</summary>x</details>    </section><p id="other">other</p>"""
    show(page, body, attributes=LIVE)
    socket = sockets.wait_for(page, 1)
    assert socket.url.endswith("/ws/live/?view=job&uid=1&language=en&since=7")
    page.click("#more summary")
    page.fill("#typed", "half a wo")
    fresh = body.replace("Pending", "Running").replace("<p id", "<p data-x id")
    send(socket, type="hello", seq=7)
    send(socket, type="fragments", seq=8, html=fresh.split("<p ")[0])
    page.wait_for_selector("text=Running")
    assert page.input_value("#typed") == "half a wo"
    assert page.evaluate("document.activeElement.id") == "typed"
    assert page.evaluate("document.getElementById('more').open")
    assert page.inner_text("#connection") == "Live"


def test_older_rendering_does_not_replace_a_newer_one(page):
    sockets = page.sockets
    show(page, '<b id="n">none</b>', attributes=LIVE)
    socket = sockets.wait_for(page, 1)
    for seq, text in ((9, "nine"), (8, "eight"), (10, "ten")):
        send(socket, type="fragments", seq=seq, html=f'<b id="n">{text}</b><i id="s{seq}"></i>')
        if seq == 8:
            send(socket, type="behind", events=3)
            page.wait_for_selector("text=3 behind")
            assert page.inner_text("#n") == "nine"
    page.wait_for_selector("text=ten")


def test_parts_of_a_page_have_their_own_sequence_numbers(page):
    sockets = page.sockets
    show(page, '<b id="a">none</b><b id="b">none</b>', attributes=LIVE)
    first = sockets.wait_for(page, 1)
    send(first, type="hello", seq=7, parts=2)
    send(first, type="fragments", part=1, seq=12, html='<b id="b">twelve</b>')
    send(first, type="fragments", part=0, seq=9, html='<b id="a">nine</b>')
    page.wait_for_selector("#a:text('nine')")
    first.close()
    assert sockets.wait_for(page, 2).url.endswith("since=9")


def test_compressed_messages_are_read_in_order(page):
    sockets = page.sockets
    show(page, '<b id="n">none</b>', attributes=LIVE)
    socket = sockets.wait_for(page, 1)
    for seq in range(8, 30):
        message = json.dumps({"type": "fragments", "seq": seq, "html": f'<b id="n">{seq}</b>'})
        socket.send(gzip.compress(message.encode()) if seq % 2 else message)
    page.wait_for_selector("#n:text('29')")


def test_lost_connection_resumes_at_its_last_event(page):
    sockets = page.sockets
    show(page, '<b id="n">none</b>', attributes=LIVE)
    first = sockets.wait_for(page, 1)
    send(first, type="fragments", seq=12, html='<b id="n">twelve</b>')
    page.wait_for_selector("text=twelve")
    first.close()
    assert sockets.wait_for(page, 2).url.endswith("since=12")


def test_page_reloads_after_the_loss_of_permissions(page):
    sockets = page.sockets
    show(page, "<p>x</p>", attributes=LIVE)
    with page.expect_navigation():
        send(sockets.wait_for(page, 1), type="gone")


def lines_of(page):
    return page.eval_on_selector_all(".log-line > span", "spans => spans.map(span => span.textContent)")


def test_log_is_complete_without_repetition_after_a_reconnect(page):
    sockets = page.sockets
    show(page, LOG)
    first = sockets.wait_for(page, 1)
    assert first.url.endswith("/ws/logs/p1/?offset=0")
    send(first, type="log", offset=0, next=8, text="a\nbé\nc\n"[:6] + "d", complete=False)
    page.wait_for_selector(".log-line:nth-child(3)")
    first.close()
    second = sockets.wait_for(page, 2)
    assert second.url.endswith("offset=8")
    send(second, type="log", offset=6, next=11, text="cd\ne\n", complete=False)  # the first two bytes are a repetition
    send(second, type="log", offset=11, next=13, text="f\n", complete=True)
    page.wait_for_selector("text=f")
    assert lines_of(page) == ["a", "bé", "cd", "e", "f"]


def test_gap_in_a_log_is_requested_again(page):
    sockets = page.sockets
    show(page, LOG)
    first = sockets.wait_for(page, 1)
    send(first, type="log", offset=0, next=2, text="a\n", complete=False)
    send(first, type="log", offset=4, next=6, text="c\n", complete=False)
    second = sockets.wait_for(page, 2)
    assert second.url.endswith("offset=2")
    send(second, type="log", offset=2, next=6, text="b\nc\n", complete=True)
    page.wait_for_selector(".log-line:nth-child(3)")
    assert lines_of(page) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("raw", "text", "classes"),
    [
        ("\x1b[31mred\x1b[0m plain", "red plain", ["ansi-1"]),
        ("\x1b[1;32mok\x1b[22m still green", "ok still green", ["ansi-bold ansi-2", "ansi-2"]),
        ("\x1b[38;5;9mbright\x1b[39m", "bright", ["ansi-1"]),
        ("\x1b[38;2;1;2;3mtrue colour", "true colour", []),
        ("\x1b]0;title\x07text\x1b[2J\x1b[10;10Hhere\x08\x00", "texthere", []),
        ("<img src=x onerror=alert(1)>", "<img src=x onerror=alert(1)>", []),
        (" 10%\r 50%\r100%", "100%", []),
    ],
)
def test_terminal_output_is_sanitized(page, raw, text, classes):
    sockets = page.sockets
    show(page, LOG)
    send(sockets.wait_for(page, 1), type="log", offset=0, next=len(raw) + 1, text=raw + "\n", complete=True)
    page.wait_for_selector(".log-line")
    assert lines_of(page) == [text]
    found = page.eval_on_selector_all(".log-line span span", "spans => spans.map(span => span.className)")
    assert found == classes
    assert page.locator(".log-line img").count() == 0


def test_log_stops_following_after_scrolling_up_and_can_be_searched(page):
    sockets = page.sockets
    show(page, LOG)
    socket = sockets.wait_for(page, 1)
    text = "".join(f"step {number}\n" for number in range(1, 1001))
    send(socket, type="log", offset=0, next=len(text), text=text, complete=False)
    page.wait_for_selector('.log-line a[href="#L1000"]')
    at_end = (
        "(box => box.scrollHeight - box.clientHeight - box.scrollTop < 3)(document.querySelector('[data-log-box]'))"
    )
    until(page, at_end)
    page.hover("[data-log-box]")
    scroll_up_until(page, "[data-log-follow]")
    send(socket, type="log", offset=len(text), next=len(text) + 5, text="more\n", complete=False)
    page.wait_for_selector('.log-line a[href="#L1001"]', state="attached")
    assert not page.evaluate(at_end)
    page.fill("[data-log-search]", "step 77")
    assert page.inner_text("[data-log-found]") == "11/11"
    page.click("[data-log-follow]")
    until(page, at_end)


def test_too_long_log_shows_its_newest_lines_and_the_number_of_older_ones(page):
    sockets = page.sockets
    show(page, LOG)
    text = "".join(f"{number}\n" for number in range(1, 100_301))
    send(sockets.wait_for(page, 1), type="log", offset=0, next=len(text), text=text, complete=True)
    page.wait_for_selector('.log-line a[href="#L100300"]', state="attached")
    assert page.inner_text("[data-log-older]") == "300 older"
    assert page.text_content(".log-line span") == "301"


def test_link_to_a_log_line_shows_the_line(page):
    sockets = page.sockets
    show(page, LOG, path="/#L120")
    text = "".join(f"step {number}\n" for number in range(1, 501))
    send(sockets.wait_for(page, 1), type="log", offset=0, next=len(text), text=text, complete=False)
    page.wait_for_selector(".log-target:visible")
    assert page.text_content(".log-target > span") == "step 120"


FORM = """<form data-draft="submit" action="/taken"><input name="name"><input type="password" name="password">
<input type="hidden" id="id_tasks-TOTAL_FORMS" name="tasks-TOTAL_FORMS" value="1">
<div data-rows="tasks" data-rows-max="3"><div data-rows-list><div data-row><input name="tasks-0-role"></div></div>
<template data-rows-empty><div data-row>
<input name="tasks-__prefix__-role"><button type="button" data-row-remove>-</button></div></template>
<button type="button" data-row-add>+</button></div></form>"""


def test_draft_survives_a_reload_without_passwords(page):
    show(page, FORM)
    page.fill("[name=name]", "digits")
    page.fill("[name=password]", "secret")
    page.click("[data-row-add]")
    page.fill("[name=tasks-1-role]", "worker")
    until(page, "sessionStorage.getItem('hekla.draft.submit')?.includes('worker')")
    assert "secret" not in page.evaluate("JSON.stringify(sessionStorage)")
    page.reload()
    page.wait_for_selector("[name=tasks-1-role]")
    assert page.input_value("[name=name]") == "digits"
    assert page.input_value("[name=tasks-1-role]") == "worker"
    assert page.input_value("[name=password]") == ""


def test_restored_draft_says_what_the_person_saw_of_a_row(page):
    """Somebody else has saved another name meanwhile: the server compares with the one that the person changed."""
    hidden = "<input type='hidden' name='initial-name' value='{0}'>"
    edit = f"<form data-draft='edit'><input name='name' value='{{0}}'>{hidden}</form>"
    show(page, edit.format("old"))
    page.fill("[name=name]", "mine")
    until(page, "sessionStorage.getItem('hekla.draft.edit')?.includes('mine')")
    show(page, edit.format("theirs"))
    until(page, "document.querySelector('[name=name]').value === 'mine'")
    assert page.input_value("[name=initial-name]") == "old"


RESTORE_FORM = """<form data-draft-back="sub" action="/back" hidden><input type="hidden" name="before">
<button name="do" value="back">back</button><button type="button" data-draft-drop>drop</button></form>"""
SINGLE, SEVERAL = (f"<input type='hidden' name='shape' value='{shape}'>" for shape in ("single", "several"))


def begin_draft(page, kind):
    """Begin a draft of this kind, and wait until it is stored."""
    show(page, FORM.replace("<input", f"{kind}<input type='checkbox' name='on' checked><input", 1))
    page.fill("[name=name]", "digits")
    until(page, "sessionStorage.getItem('hekla.draft.submit')?.includes('digits')")


def test_another_page_offers_to_restore_a_draft(page):
    begin_draft(page, SEVERAL)
    show(page, RESTORE_FORM, path="/gallery")
    page.wait_for_selector("text=back")
    draft = json.loads(page.input_value("[name=before]"))
    wanted = {"shape": ["several"], "on": ["on"], "name": ["digits"], "tasks-TOTAL_FORMS": ["1"], "tasks-0-role": [""]}
    assert draft == wanted
    page.click("text=drop")
    assert page.evaluate("sessionStorage.getItem('hekla.draft.submit')") is None
    assert page.is_hidden("text=back")


def test_form_of_another_kind_offers_to_restore_a_draft(page):
    begin_draft(page, SEVERAL)
    show(page, RESTORE_FORM + FORM.replace("<input", f"{SINGLE}<input", 1))
    page.wait_for_selector("text=back")
    assert page.input_value("[name=name]") == ""
    show(page, RESTORE_FORM + FORM.replace("<input", f"{SEVERAL}<input", 1))
    until(page, "document.querySelector('[data-draft] [name=name]').value === 'digits'")
    assert page.is_hidden("text=back")


def test_draft_returned_by_the_server_stays_stored(page):
    begin_draft(page, SINGLE)
    page.evaluate("document.querySelector('form').requestSubmit()")
    page.wait_for_url("**/taken?**")
    show(page, FORM.replace("data-draft", "data-answered data-draft").replace("<input", f"{SEVERAL}<input", 1))
    show(page, RESTORE_FORM, path="/gallery")
    page.wait_for_selector("text=back")
    assert json.loads(page.input_value("[name=before]"))["shape"] == ["several"]


def test_form_rows_are_numbered_without_gaps(page):
    show(page, FORM)
    page.click("[data-row-add]")
    page.click("[data-row-add]")
    assert page.is_disabled("[data-row-add]")
    page.fill("[name=tasks-2-role]", "last")
    page.click("[data-row]:nth-child(2) [data-row-remove]")
    assert page.input_value("[name=tasks-1-role]") == "last"
    assert page.input_value("#id_tasks-TOTAL_FORMS") == "2"


CONFIRM = """<form data-confirm="It ends." data-confirm-name="vision" action="/done"><button>Delete</button></form>
<dialog id="confirm-dialog"><form method="dialog"><h2></h2><p data-confirm-text></p>
<label data-confirm-typed hidden><span data-confirm-label></span><input></label>
<button value="cancel">no</button><button value="confirm" data-confirm-go>yes</button></form></dialog>"""


def test_irreversible_action_requires_the_name(page):
    show(page, CONFIRM)
    page.click("text=Delete")
    assert page.inner_text("[data-confirm-text]") == "It ends."
    assert page.is_disabled("[data-confirm-go]")
    page.fill("[data-confirm-typed] input", "vision")
    page.click("[data-confirm-go]")
    page.wait_for_url("/done?")


def test_times_are_relative_with_the_exact_one_as_title(own_page):
    page = own_page
    page.clock.install(time="2026-11-21T08:30:00Z")
    times = (
        '<time id="a" datetime="2026-11-21T08:27:00Z" data-relative>x</time>'
        '<time id="d" data-from="2026-11-21T07:00:00Z" data-to="2026-11-21T08:04:00Z">x</time>'
        '<time id="l" data-until="2026-11-21T10:00:50Z">x</time>'
    )
    show(page, times)
    until(page, "document.getElementById('a').textContent !== 'x'")
    assert page.inner_text("#a").startswith("3 min")
    assert page.inner_text("#d") == "1h 4m"
    assert page.inner_text("#l") == "1h 30m"
    assert "10:00" in page.get_attribute("#l", "title")
    assert "2026" in page.get_attribute("#a", "title")


PART = """<div id="part" data-refresh="/part/" data-refresh-seconds="1" {more}><b>{words}</b>
<details id="more"><summary>m</summary>x</details><input id="typed"></div>"""


def serve_part(page, responses):
    """Answer the requests of the part in order, and repeat the last answer. Return the list of requests."""
    requests = []

    def respond(hx_request):
        requests.append(hx_request)
        return responses.pop(0) if len(responses) > 1 else responses[0]

    page.site.parts["/part/"] = respond
    return requests


def test_part_refreshes_and_keeps_input_until_a_response_has_no_refresh_attribute(page):
    responses = [(200, PART.format(more="", words="second"))]
    requests = serve_part(page, responses)
    show(page, PART.format(more="", words="first"))
    page.click("#more summary")
    page.fill("#typed", "half a wo")
    page.wait_for_selector("text=second")
    assert page.evaluate("document.getElementById('more').open")
    assert page.input_value("#typed") == "half a wo"
    responses.append((200, '<div id="part"><b>last</b></div>'))
    page.wait_for_selector("text=last")
    count = len(requests)
    page.wait_for_timeout(2500)
    assert requests == ["true"] * count


def test_part_stays_and_is_requested_again_after_an_error(page):
    serve_part(page, [(503, '<div id="part">trouble</div>'), (200, '<div id="part"><b>there</b></div>')])
    show(page, PART.format(more="", words="first"))
    page.wait_for_selector("text=there", timeout=6000)


def test_search_suggests_names_while_one_types(page, tmp_path):
    found = tmp_path / "found.json"
    found.write_text(json.dumps([{"name": "train-1", "note": "ann"}, {"name": "train-2", "note": "bob"}]))
    body = """<dialog id="palette" data-search="/found.json"><input><ul></ul></dialog><form data-autosubmit>
      <input type="search" name="q" list="names" data-suggest="job"><datalist id="names"></datalist>
      <input name="owner" list="people" data-suggest="person" data-suggest-by="note"><datalist id="people"></datalist>
      </form>"""
    show(page, body, extra={"/found.json": found})
    for field, names in (("q", "train-1 train-2"), ("owner", "ann bob")):
        page.type(f"[name={field}]", "tr")
        until(
            page,
            f"[...document.querySelector('[name={field}]').list.options].map((o) => o.value).join(' ') === '{names}'",
        )


def test_part_that_loads_later_has_the_height_of_last_time(page):
    page.site.parts["/part"] = lambda _request: (200, '<p style="height: 90px">late</p>')
    body = """<script src="/js/early.js"></script>
      <div id="late" data-keep-height hx-get="/part" hx-trigger="load"></div><p id="below">below</p>"""
    show(page, body)
    page.wait_for_selector("#late p")
    until(page, "Object.keys(localStorage).some((key) => key.startsWith('hekla.height.late.'))")
    height = page.evaluate("document.getElementById('late').offsetHeight")
    page.site.parts["/part"] = lambda _request: (204, "")
    show(page, body)
    assert page.evaluate("document.getElementById('late').offsetHeight") == height > 0
