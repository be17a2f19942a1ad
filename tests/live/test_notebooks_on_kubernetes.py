"""A notebook in a pod on a real API server submits a job, where the configuration lets pods reach the console.

The kubelets of the test cluster run commands of all pods on this machine, in a folder that stands for the pod's. All
ports of all pods lead to one local port, where a stand-in for JupyterLab listens.
"""

from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse
from tests.controller.conftest import World, one_machine, world
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.plugin import grant_in_namespace
from tests.live.test_tools import browser, start, until_it_is_not_starting
from tests.support.terminals import run_pod

from hekla.apps.clusters.models import Cluster
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.workbench.models import ToolSession
from hekla.workbench import tools

__all__ = ["browser", "one_machine", "world"]
pytestmark = [pytest.mark.kubernetes, pytest.mark.parametrize("world", ["kubernetes"], indirect=True)]
NOTEBOOK = """
import http.server, sys
from hekla.client import magics
magics.cell_magic("--name from-pod --detach", "print(1)")
handler = http.server.SimpleHTTPRequestHandler
http.server.ThreadingHTTPServer.allow_reuse_address = True
http.server.ThreadingHTTPServer(("127.0.0.1", int(open("port").read())), handler).serve_forever()
"""


def test_cell_in_a_pod_is_submitted_where_pods_reach_the_console(
    world: World,
    browser: Client,
    small_cluster: ControlPlane,
    granted_namespace: str,
    live_server: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = tmp_path / "pod"
    (folder / "jupyterlab").mkdir(parents=True)
    (folder / "jupyterlab" / "__init__.py").touch()
    (folder / "jupyterlab" / "__main__.py").write_text(NOTEBOOK)
    (folder / "port").write_text(str(small_cluster.port_inside))
    shell, option, loop, script = tools._COMMAND
    monkeypatch.setattr(tools, "_COMMAND", (shell, option, f"cd {folder} && {loop}", script))
    pod = run_pod(world)
    for rights in ("rights-terminals.yaml", "rights-connections.yaml"):
        grant_in_namespace(small_cluster, rights, granted_namespace)

    token, output = opened(browser, pod, folder)
    assert (token, "An operator sets “console” in the configuration of the cluster." in output) == (None, True)
    config = {**world.cluster.config, "console": {"url": f"{live_server.url}/"}}
    Cluster.objects.filter(pk=world.cluster.pk).update(config=config)
    token, output = opened(browser, pod, folder)
    job = Job.objects.get(name="from-pod")
    assert (job.owner, token is None) == (world.alice, False)
    assert f"Submitted from-pod: {settings.PUBLIC_URL.rstrip('/')}/jobs/{job.uid}/" in output


def opened(browser: Client, pod: Pod, folder: Path) -> tuple[int | None, str]:
    """The token of a session, and what its notebook wrote. The session has ended then."""
    opening = start(browser, pod, "jupyterlab")
    assert opening.status_code == 201, opening.content
    uid = opening.json()["uid"]
    found = until_it_is_not_starting(browser, pod, uid)
    assert found["state"] == "ready", found
    row = ToolSession.objects.get(uid=uid)
    output = (folder / ".hekla-tools" / f"{row.uid.hex}.log").read_text()
    browser.delete(reverse("api:v1:job_session", args=[pod.job.uid, uid]))
    return row.token_id, output
