"""The recipes of platform/README.md: a copy of the tree with their files has what they add."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection
from tests.support.recipes import follow

from hekla.apps.accounts.models import User
from hekla.apps.tenancy.models import Membership, Tenant
from hekla.lib import clock
from hekla.lib.checkout import CHECKOUT


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the source tree of a console, with its bytecode."""
    ignored = shutil.ignore_patterns("vendor")
    for name in ("platform", "templates", "static"):
        shutil.copytree(CHECKOUT / name, tmp_path / name, ignore=ignored)
    shutil.copytree(CHECKOUT / "static" / "vendor", tmp_path / "static" / "vendor")
    for name in ("manage.py", "pyproject.toml"):
        shutil.copy(CHECKOUT / name, tmp_path / name)
    if (cache := CHECKOUT / ".import_linter_cache").is_dir():
        shutil.copytree(cache, tmp_path / cache.name)
    return tmp_path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder for a package beside the console."""
    (tmp_path / "platform").symlink_to(CHECKOUT / "platform")
    return tmp_path


def run(tree: Path, *arguments: str, also: Path | None = None) -> str:
    """Run Python in this tree with the database of the test, and the packages of another folder. Return its output."""
    database = connection.settings_dict
    url = f"postgresql://{database['USER']}:{database['PASSWORD']}@/{database['NAME']}?host={database['HOST']}"
    if database.get("PORT"):
        url += f"&port={database['PORT']}"
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, (tree, tree / "platform", *([also] if also else [])))),
        "DJANGO_SETTINGS_MODULE": "hekla.project.settings",
        "DATABASE_URL": url,
        "VALKEY_URL": settings.VALKEY_URL,
        "HEKLA_SECRET_KEY": settings.SECRET_KEY,
    }
    done = subprocess.run(
        [sys.executable, "-W", "ignore", *arguments],
        cwd=tree,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


BEGIN = """
import django, importlib, json
django.setup()
from django.core.management import call_command
call_command("makemigrations", "notes", verbosity=0)
importlib.invalidate_caches()
call_command("migrate", "notes", verbosity=0)
"""
OPEN_THE_PAGE = """
from django.test import Client
from hekla.apps.accounts.models import User
from hekla.live import registry
from hekla.apps.search import selectors
from hekla.pages import access_matrix

user = User.objects.get(username="ada")
client = Client(headers={"host": "localhost"})
before = client.get("/greeting/").status_code
client.force_login(user)
page = client.get("/greeting/")
print(json.dumps({
    "signed_out": before,
    "status": page.status_code,
    "greets": "Hello ada" in page.content.decode(),
    "rail": 'href="/greeting/"' in client.get("/jobs/").content.decode(),
    "live": registry.find("greeting")[0].render(user, {}),
    "found": [hit.path for hit in selectors.find(user, "greet", "en") if hit.kind == "greeting"],
    "undeclared": sorted(set(access_matrix.answers()) ^ set(access_matrix.declared())),
}))
"""
ADD_A_NOTE = """
from hekla.apps.notes import selectors, services
from hekla.apps.tenancy.models import Tenant
from hekla.domain.errors import NotFound

root, tenant = User.objects.get(username="root"), Tenant.objects.get(slug="lab")
try:
    services.add(tenant, "mine", by=User.objects.get(username="eve"))
    stranger = "let in"
except NotFound:
    stranger = "kept out"
services.add(tenant, "The printer is out of paper.", by=root)
print(json.dumps({"stranger": stranger, "notes": [note.text for note in selectors.visible_to(root)]}))
call_command("migrate", "notes", "zero", verbosity=0)
"""
RUN_A_JOB = """
from hekla.apps.clusters import services as clusters
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job
from hekla.apps.queues import services as queues
from hekla.controller.backends import backend_of
from hekla.controller.controllers import controllers
from hekla.domain.jobspec import JobSpec
from hekla.lib import clock

now = clock.now()
cluster = clusters.create(name="instant", kind="instant", config={"cpu": "2"}, actor=PLATFORM, now=now)
queues.create(cluster=cluster, name="default", actor=PLATFORM, now=now)
spec = JobSpec.parse({"name": "one", "tasks": [{"name": "main", "command": ["echo", "hi"]}]})
job = services.submit(spec=spec, tenant=tenant, user=user, now=now)
for _ in range(20):
    controllers.reconcile(cluster)
    if Job.objects.get(pk=job.pk).phase == "completed":
        break
    backend_of(cluster).wait(0.1)
(pod,) = job.pods.all()
print(json.dumps({"job": Job.objects.get(pk=job.pk).phase, "pod": pod.phase, "node": pod.node}))
"""


@pytest.mark.django_db(transaction=True)
def test_page_app_and_backend_are_registered(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The files of the three recipes do not meet, so one process, which takes long to load, has all of them."""
    ada, root, _eve = (User.objects.create_user(name, password="a long password") for name in ("ada", "root", "eve"))
    User.objects.filter(pk=root.pk).update(platform_role="admin")
    tenant = Tenant.objects.create(slug="lab", name="Lab", created_at=clock.now())
    Membership.objects.create(tenant=tenant, user=ada, role="member", since=clock.now())
    beside = tmp_path_factory.mktemp("beside")
    follow("page", tree), follow("app", tree), follow("backend", beside)
    _add_the_app(tree / "platform" / "hekla" / "project" / "settings.py")
    output = run(tree, "-c", BEGIN + OPEN_THE_PAGE + ADD_A_NOTE + RUN_A_JOB, also=beside)
    page, note, job = (json.loads(line) for line in output.splitlines()[-3:])
    assert page.pop("live").strip() == '<p id="greeting" data-live>Hello ada</p>'
    assert page == {
        **{"signed_out": 302, "status": 200, "greets": True, "rail": True},
        **{"found": ["/greeting/"], "undeclared": []},
    }
    assert note == {"stranger": "kept out", "notes": ["The printer is out of paper."]}
    assert job == {"job": "completed", "pod": "succeeded", "node": "instant"}
    _check_imports(tree)


def _add_the_app(settings_file: Path) -> None:
    text = settings_file.read_text()
    assert text.count('    "hekla.apps.search",\n') == 1
    settings_file.write_text(
        text.replace('    "hekla.apps.search",\n', '    "hekla.apps.search",\n    "hekla.apps.notes",\n')
    )


def _check_imports(tree: Path) -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [linter], cwd=tree, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": "platform"}
    )
    assert done.returncode == 0, done.stdout


GET_PLUGIN_ENVIRONMENT = """
import json
from hekla.domain import frameworks
from hekla.domain.jobspec import JobSpec
task = {"name": "main", "replicas": 3, "command": ["true"]}
spec = JobSpec.parse({"name": "x", "plugins": {"rank": []}, "tasks": [task]})
hosts = {("main", index): f"127.1.0.{index + 1}" for index in range(3)}
print(json.dumps(dict(frameworks.settings_for(spec, "main", 0, hosts).env)))
"""


@pytest.mark.django_db
def test_job_plugin_is_registered_by_its_entry_point(folder: Path) -> None:
    follow("job plugin", folder)
    assert json.loads(run(folder, "-c", GET_PLUGIN_ENVIRONMENT))["WORLD_SIZE"] == "3"


RUN_A_CYCLE = """
import json
from pathlib import Path
from hekla.domain.phases import GangPhase
from hekla.domain.resources import Resources
from hekla.engine import cycle
from hekla.engine.model import ClusterState, NodeSpec, PodGroupSpec, PodSpec, QueueSpec
from hekla.engine.policy import parse

room = Resources.parse({"cpu": "4", "memory": "8Gi", "pods": "10"})
nodes = (NodeSpec("a", room), NodeSpec("b", room, {"noise": "low"}), NodeSpec("c", room))
pods = (PodSpec("1", "one-0", "main", Resources.parse({"cpu": "1"})),)
jobs = (PodGroupSpec(uid="one", name="one", queue="q", pods=pods, phase=GangPhase.INQUEUE, min_available=1),)
state = ClusterState(nodes, (QueueSpec("q"),), jobs)
decisions = cycle(state, parse(Path("policy.yaml").read_text()), 0.0)
print(json.dumps({"nodes": [bind.node for bind in decisions.binds], "faults": len(decisions.faults)}))
"""


@pytest.mark.django_db
def test_engine_plugin_is_registered_by_its_entry_point(folder: Path) -> None:
    follow("engine plugin", folder)
    assert json.loads(run(folder, "-c", RUN_A_CYCLE)) == {"nodes": ["b"], "faults": 0}
