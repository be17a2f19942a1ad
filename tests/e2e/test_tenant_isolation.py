"""Tenant isolation: a person of one tenant finds no trace of what a person of another tenant has.

Everything of a person has a marker word in its name, from the tenant to log lines. So a leak is a page, a REST response
or a socket message with the marker of the other person.
"""

import base64
import html
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from playwright.sync_api import Browser, Page, ViewportSize, WebSocket, expect
from tests.e2e.conftest import HeklaServer, clean
from tests.e2e.crawler import CrawledPage, crawl
from tests.e2e.people import invite, join, send

pytestmark = [pytest.mark.browser, pytest.mark.slow]

WIDE: ViewportSize = {"width": 1440, "height": 900}
SHARED = "both-wait"
LONG = {"name": "main", "command": ["sleep", "600"], "resources": {"cpu": "50m"}}
"""The shared queue has room for one such task, so later jobs stay pending during the test."""
FILTERS = [f"/jobs/?{query}" for query in ("all=yes", "deleted=yes", "group=tenant", "group=owner", "phase=failed")]
CLOSE_CODE = """address => new Promise(resolve => {
    const socket = new WebSocket(`ws://${location.host}${address}`);
    socket.onmessage = message => resolve(message.data);
    socket.onclose = event => resolve(event.code);
})"""


@dataclass
class Person:
    """A person, the marker word of everything they own, and its IDs."""

    word: str
    page: Page
    token: str = ""
    pod: str = ""
    uids: dict[str, str] = field(default_factory=dict)
    messages: list[str] = field(default_factory=list)

    def owns(self, path: str) -> bool:
        return any(mark in path for mark in (self.word, f"/pods/{self.pod}/", *self.uids.values()))


def add_tenant(admin: Page, word: str) -> None:
    admin.goto("/tenants/new/")
    admin.get_by_label("Name", exact=True).fill(f"The {word} team")
    admin.get_by_label("Short name").fill(word)
    admin.get_by_role("button", name="Add").click()
    admin.wait_for_url(re.compile(f"/tenants/{word}/"))


def add_person(hekla: HeklaServer, browser: Browser, admin: Page, word: str) -> Person:
    add_tenant(admin, word)
    page = join(hekla, browser, invite(admin, word, "admin"), f"{word}-ann", WIDE)
    person = Person(word, page)
    page.on("websocket", lambda socket: record_messages(socket, person))
    return person


def record_messages(socket: WebSocket, person: Person) -> None:
    socket.on("framereceived", lambda payload: person.messages.append(str(payload)))


def add_objects(person: Person) -> None:
    """Create one of each object that a tenant can have."""
    page, word = person.page, person.word
    main = {"name": "main", "command": ["echo", word], "resources": {"cpu": "10m"}}
    sweep_task = main | {"command": ["echo", "{{ n }}"]}
    job = {"name": word, "description": word, "tasks": [main]}
    objects: dict[str, Any] = {
        "templates": job,
        "flows": {"name": word, "steps": [{"name": word, "job": job}]},
        "batches": {"name": word, "parameters": {"n": [word]}, "job": {"tasks": [sweep_task]}},
        "schedules": {"name": word, "cron": "@daily", "job": job},
        "saved_templates": {"name": f"{word} usual", "spec": job},
        "gallery": {"title": f"{word} card", "tenant": word, "spec": job},
    }  # fmt: skip
    for kind, document in objects.items():
        send(page, "POST", f"/api/v1/{kind}", document)
        [created] = (one for one in page.request.get(f"/api/v1/{kind}").json()["results"] if word in json.dumps(one))
        person.uids[kind] = created["uid"]
    rule = {"name": word, "measure": "jobs_waiting", "threshold": 1000}
    person.uids["alert-rules"] = str(send(page, "POST", f"/api/v1/alert-rules?tenant={word}", rule)["rule"]["uid"])
    report = {"name": word, "scope": "tenant", "subject": word, "sections": ["classes"]}
    person.uids["reports"] = str(send(page, "POST", "/api/v1/reports", report)["uid"])
    for name in ("first-of-all", "waits"):
        person.uids[name] = submit(page, {"name": f"{word}-{name}", "queue": SHARED, "tasks": [LONG]})
    person.uids["failed"] = submit(page, job | {"tasks": [main | {"command": ["sh", "-c", f"echo {word}; exit 3"]}]})
    person.token = str(send(page, "POST", "/api/v1/tokens", {"name": word, "days": 1})["token"])
    page.goto("/notifications/settings/")
    page.get_by_label("Email address").fill(f"{word}@example.org")
    page.get_by_role("button", name="Save").click()
    save_view(page, word)
    submit_with_form(person)
    person.uids["uploads"] = begin_upload(person)


def begin_upload(person: Person) -> str:
    """Begin to write a file into the folder of the person's job, and return the upload's uid."""
    headers = {"Upload-Length": "3", "Upload-Metadata": f"path {base64.b64encode(person.word.encode()).decode()}"}
    with httpx2.Client(trust_env=False, headers={"Authorization": f"Bearer {person.token}"} | headers) as client:
        origin = "/".join(person.page.url.split("/")[:3])
        response = client.post(f"{origin}/api/v1/jobs/{person.uids['jobs']}/pods/main/0/uploads")
    assert response.status_code == 201, response.text
    return str(response.json()["uid"])


def submit(page: Page, spec: object) -> str:
    response: Any = send(page, "POST", "/api/v1/jobs", spec)
    return str(response["job"]["uid"])


def save_view(page: Page, word: str) -> None:
    page.goto(f"/jobs/?q={word}")
    page.locator("summary[aria-label=Views]").click()
    page.get_by_role("button", name="Save as view").click()
    page.locator("#save-view").get_by_label("Name").fill(f"{word} view")
    page.locator("#save-view").get_by_label("Visible to").select_option(word)
    page.locator("#save-view").get_by_role("button", name="Save").click()
    page.wait_for_url(re.compile(f"q={word}"))


def submit_with_form(person: Person) -> None:
    """Submit a job with the form, and wait until it has run and its notification is there."""
    page = person.page
    page.goto("/jobs/submit/")
    page.get_by_label("Name", exact=True).fill(f"{person.word}-first")
    page.locator("#id_tasks-0-command").fill(f"echo {person.word}")
    page.locator("#id_tasks-0-cpu").fill("100m")
    page.get_by_role("button", name="Submit").click()
    page.wait_for_url(re.compile("/jobs/[0-9a-f-]{36}/"))
    person.uids["jobs"] = page.url.split("/")[4]
    expect(page.locator("#job-head")).to_contain_text("Completed", timeout=60_000)
    person.pod = page.locator("a[href*='/pods/']").first.get_attribute("href").split("/")[4]
    page.goto("/notifications/")
    expect(page.locator("#content")).to_contain_text(f"{person.word}-first", timeout=60_000)


@pytest.fixture(scope="module")
def two_people(hekla: HeklaServer, browser: Browser, admin_page: Page) -> Iterator[tuple[Person, Person]]:
    """Two people with the same kinds of objects: the owner, and the one who looks for them."""
    clean(hekla, admin_page)
    people = [add_person(hekla, browser, admin_page, word) for word in ("quokka", "wombat")]
    limits = {"capability": {"cpu": "50m"}, "tenants": ["quokka", "wombat"]}
    send(admin_page, "POST", "/api/v1/queues", {"name": SHARED, "cluster": "local", **limits})
    for person in people:
        add_objects(person)
    yield people[0], people[1]
    for person in people:
        for name in ("first-of-all", "waits"):
            send(person.page, "POST", f"/api/v1/jobs/{person.uids[name]}/actions", {"action": "AbortJob"})
        person.page.context.close()


@pytest.fixture(scope="module")
def crawled(two_people: tuple[Person, Person]) -> list[CrawledPage]:
    """One page of every route that is linked for the second person."""
    return list(crawl(two_people[1].page))


def test_pages_show_nothing_of_another_tenant(two_people: tuple[Person, Person], crawled: list[CrawledPage]) -> None:
    owner, other = two_people
    pages = {}
    for found in crawled:
        pages[found.path] = found.html
        pages |= {part: other.page.request.get(part).text() for part in found.parts if part not in pages}
    for path in [*FILTERS, *(f"/search/?q={text}" for text in (owner.word, owner.uids["jobs"]))]:
        response = other.page.goto(path, wait_until="networkidle")
        assert response
        pages[path] = other.page.content().replace(f"q={owner.word}", "").replace(f'value="{owner.word}"', "")
    assert len(pages) > 50
    assert [path for path, html in pages.items() if owner.word in html.lower()] == []
    assert any(other.word in html for html in pages.values())


def test_shared_queue_shows_counts_but_not_jobs_of_other_tenants(two_people: tuple[Person, Person]) -> None:
    for person, own in zip(two_people, (1, 2), strict=True):
        person.page.goto(f"/queues/{SHARED}/")
        line = person.page.locator("#queue-line")
        expect(line).to_contain_text("Pending: 3")
        expect(line.locator("tbody tr")).to_have_count(own)
        expect(line).to_contain_text(f"{person.word}-waits")
    expect(two_people[1].page.locator("#queue-inside")).to_contain_text(
        "All running jobs here belong to other tenants."
    )
    expect(two_people[1].page.locator("#queue-parts")).not_to_contain_text(two_people[0].word)


def test_search_finds_nothing_of_another_tenant(two_people: tuple[Person, Person]) -> None:
    owner, other = two_people
    for person, hits in ((owner, True), (other, False)):
        person.page.goto("/queues/")
        person.page.keyboard.press("Control+k")
        with person.page.expect_response("**/api/v1/search?**") as response:
            person.page.get_by_role("combobox", name="Go to").fill(owner.word)
        assert (owner.word in response.value.text().lower()) is hits


def test_addresses_of_another_tenant_return_404(two_people: tuple[Person, Person], crawled: list[CrawledPage]) -> None:
    """Those that the second person finds, for the first."""
    stranger, owner = two_people
    owned = {path for found in crawled for path in [found.path, *found.links] if owner.owns(urlsplit(path).path)}
    owned |= {path for path in downloads(owner) if owner.owns(path)}
    assert len(owned) > 30
    found = {path: stranger.page.request.get(path).status for path in owned}
    assert {path: status for path, status in found.items() if status != 404} == {}


def downloads(owner: Person) -> list[str]:
    """The links to files and the parts on the page of a job that ran."""
    found = list[str]()
    for tab in ("overview", "log", "pods", "results", "files", "settings"):
        path = f"/jobs/{owner.uids['jobs']}/?tab={tab}"
        parts = addresses_on(owner, path, "hx-get", "data-refresh")
        found += [*parts, *addresses_on(owner, path, "href")]
        found += [link for part in parts for link in addresses_on(owner, part, "href")]
    return found


def addresses_on(owner: Person, path: str, *names: str) -> list[str]:
    """The addresses in these attributes of a page or part, which is requested, not rendered."""
    text = owner.page.request.get(path).text().partition("<main")
    found = re.findall(rf' (?:{"|".join(names)})="(/[^"]*)"', text[2] or text[0])
    return [html.unescape(address) for address in found]


def test_exported_job_list_has_only_own_jobs(two_people: tuple[Person, Person]) -> None:
    owner, other = two_people
    own, foreign = (person.page.request.get("/jobs/file/?all=yes").text() for person in two_people)
    assert owner.word in own
    assert owner.word not in foreign
    assert other.word in foreign


def test_sockets_of_another_tenant_are_refused_and_own_ones_do_not_leak(
    two_people: tuple[Person, Person], hekla: HeklaServer
) -> None:
    owner, other = two_people
    sockets = [f"/ws/live/?view=job&uid={owner.uids['jobs']}", f"/ws/logs/{owner.pod}/"]
    sockets += [
        f"/ws/live/?view={kind}&uid={owner.uids[kinds]}"
        for kind, kinds in (("flow", "flows"), ("batch", "batches"), ("schedule", "schedules"))
    ]
    other.page.goto("/jobs/?all=yes", wait_until="networkidle")
    assert {address: other.page.evaluate(CLOSE_CODE, address) for address in sockets} == dict.fromkeys(sockets, 4404)
    other.messages.clear()
    submit(owner.page, {"name": f"{owner.word}-unheard", "tasks": [{"name": "main", "command": ["true"]}]})
    submit(other.page, {"name": f"{other.word}-heard", "tasks": [{"name": "main", "command": ["true"]}]})
    expect(other.page.locator("#jobs")).to_contain_text(f"{other.word}-heard", timeout=20_000)
    assert [frame for frame in other.messages if owner.word in frame] == []


def test_rest_returns_nothing_of_another_tenant(two_people: tuple[Person, Person], hekla: HeklaServer) -> None:
    from hekla.api.v1.urls import urlpatterns

    owner, other = two_people
    lists = [str(one.pattern) for one in urlpatterns if "<" not in str(one.pattern)]
    addresses = [address(str(one.pattern), owner) for one in urlpatterns]
    with rest_client(hekla, owner) as own_client, rest_client(hekla, other) as foreign_client:
        owned = [path for path in filter(None, addresses) if own_client.get(path).is_success]
        assert len(owned) >= 20
        assert {path: foreign_client.get(path).status_code for path in owned} == dict.fromkeys(owned, 404)
        texts = {
            path: foreign_client.get(path, params={"q": owner.word, "limit": 200}).text
            for path in lists
            if path != "schema"
        }
        texts |= {
            path: foreign_client.get(path).text for path in [*lists, f"queues/{SHARED}", f"queues/{SHARED}/standing"]
        }
    assert [path for path, text in texts.items() if owner.word in text.lower()] == []


def rest_client(hekla: HeklaServer, person: Person) -> httpx2.Client:
    headers = {"Authorization": f"Bearer {person.token}"}
    return httpx2.Client(base_url=f"{hekla.url}/api/v1/", headers=headers, timeout=60, trust_env=False)


def address(pattern: str, owner: Person) -> str | None:
    """The address of an object of the owner for this URL pattern. None if the pattern has no such object."""
    kind = pattern.split("/", maxsplit=1)[0]
    if kind == "tenants":
        return pattern.replace("<slug:slug>", owner.word) if "<slug:" in pattern and "<int:" not in pattern else None
    of_no_tenant = {"guests", "recordings", "policy-lab", "announcements", "alert-actions", "price-lists"}
    if "<uuid:uid>" not in pattern or kind in of_no_tenant:
        return None  # the first in tests/live/test_sharing.py; the others belong to no tenant alone
    return pattern.replace("<uuid:uid>", owner.uids[kind]).replace("<slug:task>", "main").replace("<int:index>", "0")
