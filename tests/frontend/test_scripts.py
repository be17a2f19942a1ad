"""The scripts in a real Chromium, with neither server nor network: the test answers the browser's requests itself."""

import gzip
import json
import mimetypes
from pathlib import Path

import pytest
from django.contrib.staticfiles import finders
from playwright.sync_api import Browser

from hekla.pages.frame import plots

STATIC = Path(__file__).parents[2] / "static"
ORIGIN = "http://hekla.test"
POLICY = "default-src 'self'; script-src 'self'; style-src 'self'; connect-src 'self' ws:"

MESSAGES = {"log_older": "{n} older", "log_found": "{i}/{n}", "catching_up": "{n} behind", "live": "Live"}
HEAD = '<link rel="stylesheet" href="/css/base.css"><link rel="stylesheet" href="/css/log.css">'
FRAME = """<!doctype html><html lang="en"><head>{head}</head><body {attributes}>{body}
<div id="connection" class="connection" hidden><span data-connection-words></span></div><div id="toasts"></div>
<script type="application/json" id="messages">{messages}</script>
<script src="/vendor/htmx.min.js" defer></script><script src="/vendor/idiomorph-ext.min.js" defer></script>
<script type="module" src="/js/app.js"></script></body></html>"""

LOG = """<section data-log="p1"><input data-log-search><span data-log-found></span>
<button data-log-previous></button><button data-log-next></button><button data-log-wrap></button>
<button data-log-copy></button><div class="log-box" data-log-box tabindex="0"><p data-log-older hidden></p>
<div class="log-lines" data-log-lines></div></div><span data-log-state></span><button data-log-follow hidden></button>
</section>"""

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture
def page(browser: Browser):
    context = browser.new_context(viewport={"width": 900, "height": 700})
    page = context.new_page()
    page.problems = []
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    yield page
    context.close()
    assert page.problems == []


def show(page, body, *, attributes="", sockets=None, path="/", extra=None):
    """Shows a page with that body; `sockets` is called with each websocket that it opens.

    `extra`: files beside those of static/, by their address.
    """
    extra = extra or {}
    html = FRAME.format(head=HEAD, attributes=attributes, body=body, messages=json.dumps(MESSAGES))

    def answer(route):
        name = route.request.url.removeprefix(ORIGIN).split("?")[0].lstrip("/")
        if (file := extra.get(name, STATIC / name)).is_file():
            kind = mimetypes.guess_type(name)[0]
            route.fulfill(body=file.read_bytes(), content_type=kind)
        else:
            route.fulfill(body=html, content_type="text/html", headers={"content-security-policy": POLICY})

    page.route("**/*", answer)
    if sockets is not None:
        page.route_web_socket("**/ws/**", sockets)
    page.goto(ORIGIN + path)


class Sockets(list):
    """The websockets that a page opened, in order."""

    def __call__(self, socket):
        self.append(socket)

    def wait_for(self, page, count):
        for _ in range(200):
            if len(self) >= count:
                return self[count - 1]
            page.wait_for_timeout(25)
        raise AssertionError(f"only {len(self)} sockets were opened")


def until(page, expression):
    """Waits until the expression is true (the browser's own waiting would need eval, which the policy forbids)."""
    for _ in range(200):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(25)
    raise AssertionError(expression)


def scroll_up_until(page, selector):
    """Turns the wheel as somebody does: once more where the browser had not drawn yet what is under the mouse."""
    for _ in range(100):
        page.mouse.wheel(0, -2000)
        page.wait_for_timeout(100)
        if page.is_visible(selector):
            return
    raise AssertionError(selector)


def send(socket, **message):
    socket.send(json.dumps(message))


LIVE = 'data-live-query="view=job&amp;uid=1" data-live-since="7"'


def test_a_fragment_changes_its_element_and_disturbs_nobody(page):
    sockets = Sockets()
    body = """<section id="job" data-live><b>Pending</b><input id="typed" value="">
    <details id="more"><summary>m</summary>x</details>    </section><p id="other">other</p>"""
    show(page, body, attributes=LIVE, sockets=sockets)
    socket = sockets.wait_for(page, 1)
    assert socket.url.endswith("/ws/live/?view=job&uid=1&since=7")
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


def test_an_older_rendering_never_replaces_a_newer_one(page):
    sockets = Sockets()
    show(page, '<b id="n">none</b>', attributes=LIVE, sockets=sockets)
    socket = sockets.wait_for(page, 1)
    for seq, text in ((9, "nine"), (8, "eight"), (10, "ten")):
        send(socket, type="fragments", seq=seq, html=f'<b id="n">{text}</b><i id="s{seq}"></i>')
        if seq == 8:
            send(socket, type="behind", events=3)
            page.wait_for_selector("text=3 behind")
            assert page.inner_text("#n") == "nine"
    page.wait_for_selector("text=ten")


def test_the_parts_of_a_page_grow_old_each_by_itself(page):
    sockets = Sockets()
    show(page, '<b id="a">none</b><b id="b">none</b>', attributes=LIVE, sockets=sockets)
    first = sockets.wait_for(page, 1)
    send(first, type="hello", seq=7, parts=2)
    send(first, type="fragments", part=1, seq=12, html='<b id="b">twelve</b>')
    send(first, type="fragments", part=0, seq=9, html='<b id="a">nine</b>')
    page.wait_for_selector("#a:text('nine')")
    first.close()
    assert sockets.wait_for(page, 2).url.endswith("since=9")


def test_compressed_messages_are_read_in_their_order(page):
    sockets = Sockets()
    show(page, '<b id="n">none</b>', attributes=LIVE, sockets=sockets)
    socket = sockets.wait_for(page, 1)
    for seq in range(8, 30):
        message = json.dumps({"type": "fragments", "seq": seq, "html": f'<b id="n">{seq}</b>'})
        socket.send(gzip.compress(message.encode()) if seq % 2 else message)
    page.wait_for_selector("#n:text('29')")


def test_a_lost_connection_goes_on_where_it_was(page):
    sockets = Sockets()
    show(page, '<b id="n">none</b>', attributes=LIVE, sockets=sockets)
    first = sockets.wait_for(page, 1)
    send(first, type="fragments", seq=12, html='<b id="n">twelve</b>')
    page.wait_for_selector("text=twelve")
    first.close()
    assert sockets.wait_for(page, 2).url.endswith("since=12")


def test_a_page_whose_rights_are_gone_is_asked_for_again(page):
    sockets = Sockets()
    show(page, "<p>x</p>", attributes=LIVE, sockets=sockets)
    with page.expect_navigation():
        send(sockets.wait_for(page, 1), type="gone")


def lines_of(page):
    return page.eval_on_selector_all(".log-line > span", "spans => spans.map(span => span.textContent)")


def test_a_log_comes_once_and_whole_over_a_broken_connection(page):
    sockets = Sockets()
    show(page, LOG, sockets=sockets)
    first = sockets.wait_for(page, 1)
    assert first.url.endswith("/ws/logs/p1/?offset=0")
    send(first, type="log", offset=0, next=8, text="a\nbé\nc\n"[:6] + "d", complete=False)
    page.wait_for_selector(".log-line:nth-child(3)")
    first.close()
    second = sockets.wait_for(page, 2)
    assert second.url.endswith("offset=8")
    send(second, type="log", offset=6, next=11, text="cd\ne\n", complete=False)  # two bytes are known already
    send(second, type="log", offset=11, next=13, text="f\n", complete=True)
    page.wait_for_selector("text=f")
    assert lines_of(page) == ["a", "bé", "cd", "e", "f"]


def test_a_gap_in_a_log_is_asked_for_again(page):
    sockets = Sockets()
    show(page, LOG, sockets=sockets)
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
def test_terminal_output_is_made_safe(page, raw, text, classes):
    sockets = Sockets()
    show(page, LOG, sockets=sockets)
    send(sockets.wait_for(page, 1), type="log", offset=0, next=len(raw) + 1, text=raw + "\n", complete=True)
    page.wait_for_selector(".log-line")
    assert lines_of(page) == [text]
    found = page.eval_on_selector_all(".log-line span span", "spans => spans.map(span => span.className)")
    assert found == classes
    assert page.locator(".log-line img").count() == 0


def test_a_log_stops_following_when_one_scrolls_up_and_finds_what_one_looks_for(page):
    sockets = Sockets()
    show(page, LOG, sockets=sockets)
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


def test_a_log_of_more_lines_than_are_kept_shows_the_newest_and_says_so(page):
    sockets = Sockets()
    show(page, LOG, sockets=sockets)
    text = "".join(f"{number}\n" for number in range(1, 100_301))
    send(sockets.wait_for(page, 1), type="log", offset=0, next=len(text), text=text, complete=True)
    page.wait_for_selector('.log-line a[href="#L100300"]', state="attached")
    assert page.inner_text("[data-log-older]") == "300 older"
    assert page.text_content(".log-line span") == "301"


def test_a_link_to_a_line_shows_that_line(page):
    sockets = Sockets()
    show(page, LOG, sockets=sockets, path="/#L120")
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


def test_what_was_typed_survives_a_reload_but_no_password_is_kept(page):
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


LEFT = """<form data-draft-back="sub" action="/back" hidden><input type="hidden" name="before">
<button name="do" value="back">back</button><button type="button" data-draft-drop>drop</button></form>"""
SINGLE, SEVERAL = (f"<input type='hidden' name='shape' value='{shape}'>" for shape in ("single", "several"))


def left(page, kind):
    """A draft of that kind was begun, and the page left."""
    show(page, FORM.replace("<input", f"{kind}<input type='checkbox' name='on' checked><input", 1))
    page.fill("[name=name]", "digits")
    until(page, "sessionStorage.getItem('hekla.draft.submit')?.includes('digits')")


def test_another_page_offers_the_way_back_to_a_draft_and_carries_it(page):
    left(page, SEVERAL)
    show(page, LEFT, path="/gallery")
    page.wait_for_selector("text=back")
    carried = json.loads(page.input_value("[name=before]"))
    wanted = {"shape": ["several"], "on": ["on"], "name": ["digits"], "tasks-TOTAL_FORMS": ["1"], "tasks-0-role": [""]}
    assert carried == wanted
    page.click("text=drop")
    assert page.evaluate("sessionStorage.getItem('hekla.draft.submit')") is None
    assert page.is_hidden("text=back")


def test_a_form_of_another_kind_leaves_a_draft_aside_and_offers_it(page):
    left(page, SEVERAL)
    show(page, LEFT + FORM.replace("<input", f"{SINGLE}<input", 1))
    page.wait_for_selector("text=back")
    assert page.input_value("[name=name]") == ""
    show(page, LEFT + FORM.replace("<input", f"{SEVERAL}<input", 1))
    until(page, "document.querySelector('[data-draft] [name=name]').value === 'digits'")
    assert page.is_hidden("text=back")


def test_a_draft_that_the_server_handed_back_is_kept_on(page):
    left(page, SINGLE)
    page.evaluate("document.querySelector('form').requestSubmit()")
    page.wait_for_url("**/taken?**")
    show(page, FORM.replace("data-draft", "data-answered data-draft").replace("<input", f"{SEVERAL}<input", 1))
    show(page, LEFT, path="/gallery")
    page.wait_for_selector("text=back")
    assert json.loads(page.input_value("[name=before]"))["shape"] == ["several"]


def test_rows_are_numbered_without_gaps(page):
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


def test_what_cannot_be_undone_needs_the_name(page):
    show(page, CONFIRM)
    page.click("text=Delete")
    assert page.inner_text("[data-confirm-text]") == "It ends."
    assert page.is_disabled("[data-confirm-go]")
    page.fill("[data-confirm-typed] input", "vision")
    page.click("[data-confirm-go]")
    page.wait_for_url(ORIGIN + "/done?")


def test_times_are_told_for_people(page):
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


def parts(page, answers):
    """Answers the part's requests in turn, the last one for ever; the list of what was asked."""
    asked = []

    def answer(route):
        status, body = answers[min(len(asked), len(answers) - 1)]
        asked.append(route.request.headers.get("hx-request"))
        route.fulfill(status=status, body=body, content_type="text/html")

    page.route("**/part/", answer)
    return asked


def test_a_part_asks_for_itself_again_disturbs_nobody_and_stops_when_it_is_told_no_more(page):
    show(page, PART.format(more="", words="first"))
    asked = parts(page, [(200, PART.format(more="", words="second")), (200, '<div id="part"><b>last</b></div>')])
    page.click("#more summary")
    page.fill("#typed", "half a wo")
    page.wait_for_selector("text=second")
    assert page.evaluate("document.getElementById('more').open")
    assert page.input_value("#typed") == "half a wo"
    page.wait_for_selector("text=last")
    page.wait_for_timeout(2500)
    assert asked == ["true", "true"]


def test_a_part_that_could_not_be_had_stays_as_it_is_and_is_asked_for_again(page):
    show(page, PART.format(more="", words="first"))
    parts(page, [(503, '<div id="part">trouble</div>'), (200, '<div id="part"><b>there</b></div>')])
    page.wait_for_selector("text=there", timeout=6000)


def plot(figure) -> str:
    """What the component c-plot makes of a figure."""
    return f"""<figure class="plot" data-plot="p" data-plot-script="/plotly/plotly.min.js">
    <script type="application/json" id="p">{plots.to_json(figure)}</script>
    <div class="plot-area" data-plot-area></div></figure>"""


def colour_of_line(page) -> str:
    return page.evaluate("document.querySelector('.scatterlayer .js-line')?.style.stroke ?? ''")


def test_a_figure_of_the_server_is_drawn_by_the_script_of_the_wheel_in_the_colours_of_the_theme(page):
    figure = plots.new_figure(xaxis_type="date", showlegend=True)
    figure.add_scatter(x=["2026-11-21T12:00:00Z", "2026-11-21T13:00:00Z"], y=[1, 2], mode="lines", name="main-0")
    radios = "".join(f'<input type="radio" name="t" value="{theme}">' for theme in plots.THEMES)
    switch = f"<div data-theme-switch>{radios}</div>"
    loaded = []
    page.on("request", lambda request: loaded.append(request.url.removeprefix(ORIGIN)))
    show(page, switch + plot(figure), extra={"plotly/plotly.min.js": Path(finders.find("plotly/plotly.min.js"))})
    page.check("input[value=light]")
    until(page, "document.querySelector('.scatterlayer .js-line') !== null")
    page.wait_for_timeout(100)
    assert colour_of_line(page) == "rgb(0, 114, 178)"
    assert "main-0" in page.text_content(".legend")
    page.check("input[value=dark]")
    until(page, "document.querySelector('.scatterlayer .js-line').style.stroke === 'rgb(86, 180, 233)'")
    assert loaded.count("/plotly/plotly.min.js") == 1


def test_a_page_without_a_plot_does_not_load_plotly(page):
    show(page, "<p>x</p>")
    assert page.evaluate("window.Plotly === undefined && !document.querySelector('script[src*=plotly]')")


def test_a_plot_whose_script_does_not_come_points_to_the_table(page):
    page.add_init_script("window.onunhandledrejection = (event) => { throw event.reason }")
    show(page, plot(plots.new_figure()))  # the answer is a page, not a script
    until(page, "document.querySelector('[data-plot-area]').textContent === 'plot_failed'")
    page.problems.clear()  # the browser's own complaint about the script


def test_instants_of_a_plot_are_shown_as_the_clock_here_says(page, tmp_path):
    """The library draws what it is given: text without a zone."""
    figure = plots.new_figure()
    figure.add_scatter(x=["2026-11-21T12:00:00Z", 3], y=[1, 2])
    stub = "window.drawn = []; window.Plotly = { react: (area, data) => window.drawn.push(data) };"
    script = tmp_path / "plotly.min.js"
    script.write_text(stub)
    show(page, plot(figure), extra={"plotly/plotly.min.js": script})
    until(page, "window.drawn?.length > 0")
    shown = page.evaluate("window.drawn[0][0].x")
    local = "new Date(Date.parse('2026-11-21T12:00:00Z') - new Date('2026-11-21').getTimezoneOffset() * 60000)"
    assert shown == [page.evaluate(f"{local}.toISOString().slice(0, -1)"), 3]
