"""The token of a session with a pod: the few requests that it may make, for its owner's jobs in one tenant."""

import json
from datetime import timedelta

import pytest
from rest_framework.test import APIClient
from tests.api.conftest import World, job

from hekla.api.session_tokens import ROUTES
from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import ApiToken
from hekla.apps.audit.sentences import sentence
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.tenancy import services as tenancy
from hekla.apps.tenancy.models import Tenant
from hekla.apps.workbench import services
from hekla.apps.workbench.models import ToolSession
from hekla.domain.tools import Tool
from hekla.lib import clock

ABORT = {"action": "AbortJob"}


class Scene:
    """Alice's session with her job `mine` in the tenant Lab, and jobs of others and elsewhere."""

    def __init__(self, world: World) -> None:
        self.alice = world.people["alice"]
        tenancy.add_member(Tenant.objects.get(slug="other"), self.alice, "member", actor=PLATFORM, now=clock.now())
        self.uids = {
            "mine": self._submit(world, "alice", "mine", "lab"),
            "bobs": self._submit(world, "bob", "bobs", "lab"),
            "elsewhere": self._submit(world, "alice", "elsewhere", "other"),
        }
        held = Job.objects.get(uid=self.uids["mine"])
        self.pod = Pod.objects.create(
            job=held, task="main", index=0, attempt=0, version=1, slot=0, phase="running", created_at=clock.now()
        )
        self.session = ToolSession.objects.create(
            slug="s", pod=self.pod, owner=self.alice, tool=Tool.JUPYTERLAB, created_at=clock.now()
        )
        self.secret = services.issue_token(self.session, now=clock.now())
        self.client = APIClient()
        self.client.credentials(HTTP_AUTHORIZATION=f"Bearer {self.secret}")

    def status(self, method: str, path: str, body: object = None) -> int:
        for name, uid in self.uids.items():
            path = path.replace(f"{{{name}}}", str(uid))
        return int(self.client.generic(method, f"/api/v1/{path}", *_json(body)).status_code)

    def _submit(self, world: World, who: str, name: str, tenant: str) -> str:
        answer = world.as_(who).post(f"/api/v1/jobs?tenant={tenant}", {**job(), "name": name}, format="json")
        assert answer.status_code == 201, answer.content
        return str(answer.json()["job"]["uid"])


def _json(body: object) -> tuple[str, str]:
    return ("" if body is None else json.dumps(body)), "application/json"


@pytest.fixture
def scene(world: World) -> Scene:
    return Scene(world)


REQUESTS = [
    ("GET", "me", None, 200),
    ("GET", "jobs", None, 200),
    ("GET", "jobs?tenant=other", None, 404),
    ("POST", "jobs", job(), 201),
    ("POST", "jobs?tenant=lab", {**job(), "name": "second"}, 201),
    ("POST", "jobs?tenant=other", job(), 404),
    ("GET", "jobs/{mine}", None, 200),
    ("GET", "jobs/{mine}/events", None, 200),
    ("GET", "jobs/{mine}/waits", None, 200),
    ("GET", "jobs/{bobs}", None, 404),
    ("GET", "jobs/{bobs}/events", None, 404),
    ("GET", "jobs/{elsewhere}", None, 404),
    ("GET", "jobs/{elsewhere}/pods/main/0/log", None, 404),
    ("POST", "jobs/{mine}/actions", ABORT, 200),
    ("POST", "jobs/{bobs}/actions", ABORT, 404),
    ("POST", "jobs/{elsewhere}/actions", ABORT, 404),
    ("DELETE", "jobs/{mine}", None, 403),
    ("POST", "jobs/bulk", {}, 403),
    ("GET", "jobs/{mine}/copy", None, 403),
    ("GET", "jobs/{mine}/sessions", None, 403),
    ("POST", "jobs/{mine}/sessions", {"task": "main", "tool": "port", "port": 80}, 403),
    ("POST", "jobs/{mine}/guests", {}, 403),
    ("PATCH", "jobs/{mine}/priority", {"priority": 5}, 403),
    ("GET", "tokens", None, 403),
    ("POST", "tokens", {"name": "more"}, 403),
    ("GET", "queues", None, 403),
    ("POST", "queues", {}, 403),
    ("GET", "audit", None, 403),
    ("GET", "nodes", None, 403),
    ("POST", "flows", {}, 403),
    ("GET", "nothing", None, 403),
]


def test_token_reaches_only_its_owners_jobs_in_the_tenant_of_the_session(scene: Scene) -> None:
    answers = {(method, path): scene.status(method, path, body) for method, path, body, _status in REQUESTS}
    assert answers == {(method, path): status for method, path, _body, status in REQUESTS}
    names = {one["name"] for one in scene.client.get("/api/v1/jobs").json()["results"]}
    assert "mine" in names
    assert not names & {"bobs", "elsewhere"}
    me = scene.client.get("/api/v1/me").json()
    assert (me["username"], me["scopes"], [one["slug"] for one in me["tenants"]]) == ("alice", ["session"], ["lab"])
    assert scene.client.get("/rest-server/api/v2/jobs").status_code == 403
    assert len(ROUTES) == 10  # a further route belongs in the table above


def test_events_name_the_session(scene: Scene) -> None:
    assert scene.status("POST", "jobs", job()) == 201
    assert scene.status("POST", "jobs/{mine}/actions", ABORT) == 200
    by_session = LoggedEvent.objects.filter(session="JupyterLab in main-0 of mine", actor_name="alice")
    assert {"JobSubmitted", "JobCommanded"} <= set(by_session.values_list("kind", flat=True))
    text = sentence(by_session.get(kind="JobSubmitted"), "train").text
    assert text.startswith("alice (from JupyterLab in main-0 of mine) submitted"), text


def _end(scene: Scene) -> None:
    services.end_session(scene.session, user=scene.alice, now=clock.now())


def _revoke(scene: Scene) -> None:
    accounts.revoke_token(scene.alice, ApiToken.objects.get(scopes=["session"]).pk, now=clock.now())


def _expire(scene: Scene) -> None:
    ApiToken.objects.filter(scopes=["session"]).update(expires_at=clock.now() - timedelta(seconds=1))


def _end_pod(scene: Scene) -> None:
    Pod.objects.filter(pk=scene.pod.pk).update(phase="completed")


def _disable(scene: Scene) -> None:
    type(scene.alice).objects.filter(pk=scene.alice.pk).update(is_active=False)


def _leave(scene: Scene) -> None:
    tenancy.remove_member(Tenant.objects.get(slug="lab"), scene.alice, actor=PLATFORM, now=clock.now())


@pytest.mark.parametrize("change", [_end, _revoke, _expire, _end_pod, _disable, _leave])
def test_token_ends_with_its_session_its_owner_and_their_right(scene: Scene, change: object) -> None:
    assert scene.status("GET", "jobs") == 200
    assert callable(change)
    change(scene)
    assert scene.status("GET", "jobs") == 401
    assert scene.status("POST", "jobs", job()) == 401


def test_token_of_a_session_is_no_token_elsewhere_and_is_listed(scene: Scene, world: World) -> None:
    assert accounts.token_in_force(scene.secret, now=clock.now()) is None  # sockets and SSH
    assert not ApiToken.objects.get(scopes=["session"]).allows("read")  # type: ignore[arg-type]
    (listed,) = (one for one in world.as_("alice").get("/api/v1/tokens").json() if one["scopes"] == ["session"])
    assert listed["name"] == "JupyterLab in main-0 of mine"


def test_others_get_no_token_in_the_pod_of_a_job(scene: Scene, world: World) -> None:
    of_root = ToolSession.objects.create(
        slug="r", pod=scene.pod, owner=world.people["root"], tool=Tool.JUPYTERLAB, created_at=clock.now()
    )
    assert services.issue_token(of_root, now=clock.now()) == ""
