"""Two people of two tenants on one console: whatever one has, the other finds no trace of it.

All that a person has holds the person's word in its name, from the tenant to a line of a log. So a leak is a page, an
answer or a message on a socket in which the word of the other stands.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from playwright.sync_api import Browser, Page, WebSocket, expect
from tests.e2e.conftest import Running
from tests.e2e.people import invitation_link, joined, send
from tests.e2e.walking import walk

pytestmark = [pytest.mark.browser, pytest.mark.slow]

WIDE = {"width": 1440, "height": 900}
SHARED = "both-wait"
LONG = {"name": "main", "command": ["sleep", "600"], "resources": {"cpu": "50m"}}
"""The shared queue has room for one such, so whoever comes later waits for as long as the test needs."""
CORNERS = [f"/jobs/?{query}" for query in ("all=yes", "deleted=yes", "group=tenant", "group=owner", "phase=failed")]
CLOSE_OF = """address => new Promise(told => {
    const socket = new WebSocket(`ws://${location.host}${address}`);
    socket.onmessage = message => told(message.data);
    socket.onclose = event => told(event.code);
})"""


@dataclass
class Person:
    """Somebody, the word in all that is theirs, and the addresses of it."""

    word: str
    page: Page
    token: str = ""
    pod: str = ""
    uids: dict[str, str] = field(default_factory=dict)
    heard: list[str] = field(default_factory=list)

    def has(self, path: str) -> bool:
        return any(mark in path for mark in (self.word, f"/pods/{self.pod}/", *self.uids.values()))


def tenant(admin: Page, word: str) -> None:
    admin.goto("/tenants/new/")
    admin.get_by_label("Name", exact=True).fill(f"The {word} team")
    admin.get_by_label("Short name").fill(word)
    admin.get_by_role("button", name="Add").click()
    admin.wait_for_url(re.compile(f"/tenants/{word}/"))


def arrive(hekla: Running, browser: Browser, admin: Page, word: str) -> Person:
    tenant(admin, word)
    page = joined(hekla, browser, invitation_link(admin, word, "admin"), f"{word}-ann", WIDE)
    someone = Person(word, page)
    page.on("websocket", lambda socket: listen(socket, someone))
    return someone


def listen(socket: WebSocket, someone: Person) -> None:
    socket.on("framereceived", lambda payload: someone.heard.append(str(payload)))


def settle(someone: Person) -> None:
    """One of everything that a tenant can have."""
    page, word = someone.page, someone.word
    main = {"name": "main", "command": ["echo", word], "resources": {"cpu": "10m"}}
    swept = main | {"command": ["echo", "{{ n }}"]}
    job = {"name": word, "description": word, "tasks": [main]}
    things: dict[str, Any] = {
        "templates": job,
        "flows": {"name": word, "steps": [{"name": word, "job": job}]},
        "batches": {"name": word, "parameters": {"n": [word]}, "job": {"tasks": [swept]}},
        "schedules": {"name": word, "cron": "@daily", "job": job},
        "presets": {"name": f"{word} usual", "spec": job},
        "gallery": {"title": f"{word} card", "tenant": word, "spec": job},
    }  # fmt: skip
    for kind, document in things.items():
        send(page, "POST", f"/api/v1/{kind}", document)
        [made] = (one for one in page.request.get(f"/api/v1/{kind}").json()["results"] if word in json.dumps(one))
        someone.uids[kind] = made["uid"]
    for name in ("first-of-all", "waits"):
        someone.uids[name] = submitted(page, {"name": f"{word}-{name}", "queue": SHARED, "tasks": [LONG]})
    someone.uids["failed"] = submitted(
        page, job | {"tasks": [main | {"command": ["sh", "-c", f"echo {word}; exit 3"]}]}
    )
    someone.token = str(send(page, "POST", "/api/v1/tokens", {"name": word, "days": 1})["token"])
    page.goto("/notifications/settings/")
    page.get_by_label("Email address").fill(f"{word}@example.org")
    page.get_by_role("button", name="Save").click()
    save_view(page, word)
    by_hand(someone)


def submitted(page: Page, spec: object) -> str:
    answer: Any = send(page, "POST", "/api/v1/jobs", spec)
    return str(answer["job"]["uid"])


def save_view(page: Page, word: str) -> None:
    page.goto(f"/jobs/?q={word}")
    page.locator("summary[aria-label=Views]").click()
    page.get_by_role("button", name="Save as view").click()
    page.locator("#save-view").get_by_label("Name").fill(f"{word} view")
    page.locator("#save-view").get_by_label("Visible to").select_option(word)
    page.locator("#save-view").get_by_role("button", name="Save").click()
    page.wait_for_url(re.compile(f"q={word}"))


def by_hand(someone: Person) -> None:
    """A job from the form, which runs and is told of."""
    page = someone.page
    page.goto("/jobs/submit/")
    page.get_by_label("Name", exact=True).fill(f"{someone.word}-first")
    page.locator("#id_tasks-0-command").fill(f"echo {someone.word}")
    page.locator("#id_tasks-0-cpu").fill("100m")
    page.get_by_role("button", name="Submit").click()
    page.wait_for_url(re.compile("/jobs/[0-9a-f-]{36}/"))
    someone.uids["jobs"] = page.url.split("/")[4]
    expect(page.locator("#job-head")).to_contain_text("Completed", timeout=60_000)
    someone.pod = page.locator("a[href*='/pods/']").first.get_attribute("href").split("/")[4]
    page.goto("/notifications/")
    expect(page.locator("#content")).to_contain_text(f"{someone.word}-first", timeout=60_000)


@pytest.fixture(scope="module")
def two(hekla: Running, browser: Browser, signed_in: dict[str, object]) -> Iterator[tuple[Person, Person]]:
    """Who has much, and who looks for it while having as much."""
    context = browser.new_context(storage_state=signed_in, base_url=hekla.url)
    admin = context.new_page()
    people = [arrive(hekla, browser, admin, word) for word in ("quokka", "wombat")]
    room = {"capability": {"cpu": "50m"}, "tenants": ["quokka", "wombat"]}
    send(admin, "POST", "/api/v1/queues", {"name": SHARED, "cluster": "local", **room})
    for someone in people:
        settle(someone)
    yield people[0], people[1]
    for someone in people:
        for name in ("first-of-all", "waits"):
            send(someone.page, "POST", f"/api/v1/jobs/{someone.uids[name]}/actions", {"action": "AbortJob"})
        someone.page.context.close()
    context.close()


def test_no_page_shows_anything_of_the_other(two: tuple[Person, Person]) -> None:
    owner, other = two
    seen = {}
    for found in walk(other.page):
        seen[found.path] = found.html
        seen |= {part: other.page.request.get(part).text() for part in found.parts}
    for path in [*CORNERS, *(f"/search/?q={text}" for text in (owner.word, owner.uids["jobs"]))]:
        answer = other.page.goto(path, wait_until="networkidle")
        assert answer
        seen[path] = other.page.content().replace(f"q={owner.word}", "").replace(f'value="{owner.word}"', "")
    assert len(seen) > 50
    assert [path for path, html in seen.items() if owner.word in html.lower()] == []
    assert any(other.word in html for html in seen.values())


def test_a_shared_queue_tells_how_many_wait_and_not_who(two: tuple[Person, Person]) -> None:
    for someone, own in zip(two, (1, 2), strict=True):
        someone.page.goto(f"/queues/{SHARED}/")
        line = someone.page.locator("#queue-line")
        expect(line).to_contain_text("Pending: 3")
        expect(line.locator("tbody tr")).to_have_count(own)
        expect(line).to_contain_text(f"{someone.word}-waits")
    expect(two[1].page.locator("#queue-inside")).to_contain_text("All running jobs here belong to other tenants.")
    expect(two[1].page.locator("#queue-parts")).not_to_contain_text(two[0].word)


def test_nothing_is_found_from_the_key_for_anything(two: tuple[Person, Person]) -> None:
    owner, other = two
    for someone, hits in ((owner, True), (other, False)):
        someone.page.goto("/queues/")
        someone.page.keyboard.press("Control+k")
        with someone.page.expect_response("**/api/v1/search?**") as answer:
            someone.page.get_by_role("combobox", name="Go to").fill(owner.word)
        assert (owner.word in answer.value.text().lower()) is hits


def test_every_address_that_is_the_owners_does_not_exist_for_the_other(two: tuple[Person, Person]) -> None:
    owner, other = two
    owned = {
        path for found in walk(owner.page) for path in [found.path, *found.links] if owner.has(urlsplit(path).path)
    }
    owned |= {path for path in downloads(owner) if owner.has(path)}
    assert len(owned) > 30
    found = {path: other.page.request.get(path).status for path in owned}
    assert {path: status for path, status in found.items() if status != 404} == {}


def downloads(owner: Person) -> list[str]:
    """The files and the parts of the page of a job that ran."""
    owner.page.goto(f"/jobs/{owner.uids['jobs']}/", wait_until="networkidle")
    script = "all => all.flatMap(one => ['href', 'hx-get', 'data-refresh'].map(name => one.getAttribute(name)))"
    found = owner.page.eval_on_selector_all("main *", script)
    return [path for path in found if path and path.startswith("/")]


def test_the_list_as_a_file_and_the_file_of_the_audit_are_ones_own(two: tuple[Person, Person]) -> None:
    owner, other = two
    own, foreign = (someone.page.request.get("/jobs/file/?all=yes").text() for someone in two)
    assert owner.word in own
    assert owner.word not in foreign
    assert other.word in foreign


def test_no_socket_opens_and_none_says_anything_of_the_other(two: tuple[Person, Person], hekla: Running) -> None:
    owner, other = two
    sockets = [f"/ws/live/?view=job&uid={owner.uids['jobs']}", f"/ws/logs/{owner.pod}/"]
    sockets += [
        f"/ws/live/?view={kind}&uid={owner.uids[kinds]}"
        for kind, kinds in (("flow", "flows"), ("batch", "batches"), ("schedule", "schedules"))
    ]
    other.page.goto("/jobs/?all=yes", wait_until="networkidle")
    assert {address: other.page.evaluate(CLOSE_OF, address) for address in sockets} == dict.fromkeys(sockets, 4404)
    other.heard.clear()
    submitted(owner.page, {"name": f"{owner.word}-unheard", "tasks": [{"name": "main", "command": ["true"]}]})
    submitted(other.page, {"name": f"{other.word}-heard", "tasks": [{"name": "main", "command": ["true"]}]})
    expect(other.page.locator("#jobs")).to_contain_text(f"{other.word}-heard", timeout=20_000)
    assert [frame for frame in other.heard if owner.word in frame] == []


def test_rest_knows_nothing_of_the_other(two: tuple[Person, Person], hekla: Running) -> None:
    from hekla.api.v1.urls import urlpatterns

    owner, other = two
    lists = [str(one.pattern) for one in urlpatterns if "<" not in str(one.pattern)]
    addresses = [address(str(one.pattern), owner) for one in urlpatterns]
    with asking(hekla, owner) as one, asking(hekla, other) as two_:
        owned = [path for path in filter(None, addresses) if one.get(path).is_success]
        assert len(owned) >= 20
        assert {path: two_.get(path).status_code for path in owned} == dict.fromkeys(owned, 404)
        told = {path: two_.get(path, params={"q": owner.word, "limit": 200}).text for path in lists if path != "schema"}
        told |= {path: two_.get(path).text for path in [*lists, f"queues/{SHARED}", f"queues/{SHARED}/standing"]}
    assert [path for path, text in told.items() if owner.word in text.lower()] == []


def asking(hekla: Running, someone: Person) -> httpx2.Client:
    headers = {"Authorization": f"Bearer {someone.token}"}
    return httpx2.Client(base_url=f"{hekla.url}/api/v1/", headers=headers, trust_env=False)


def address(pattern: str, owner: Person) -> str | None:
    """Where something of the owner's is asked for by such an address; None where it is nobody's."""
    kind = pattern.split("/", maxsplit=1)[0]
    if kind == "tenants":
        return pattern.replace("<slug:slug>", owner.word) if "<slug:" in pattern and "<int:" not in pattern else None
    if "<uuid:uid>" not in pattern:
        return None
    return pattern.replace("<uuid:uid>", owner.uids[kind]).replace("<slug:task>", "main").replace("<int:index>", "0")
