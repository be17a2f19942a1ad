"""What pods in containers may use: the images of their tenant, and the parts of volumes that they name."""

import json
import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.backends.local.test_isolation import of_tenant, output
from tests.backends.local.test_processes import folder_of

from hekla.backends.base import Observation, StartRefused
from hekla.backends.local.containers import order as container_orders
from hekla.backends.local.containers import registries
from hekla.backends.local.containers.runtime import EngineInfo, Runtime
from hekla.domain.phases import PodPhase
from hekla.domain.volumes import VolumeMount, VolumeSpec

CLAIM = {"volume_claim": {"storage": "1Gi"}}


# Images


@pytest.fixture
def private(registry, podman) -> Iterator[str]:
    """The name of an image that only a pull with a password can get."""
    image = registry.push("private", "1")
    yield image
    if image in names_of_images(podman):
        podman.engine.request("DELETE", f"/images/{image}?noprune=true")


def names_of_images(podman) -> set[str]:
    return {name for image in podman.engine.request("GET", "/images/json") for name in image["RepoTags"] or ()}


def allow(cluster, host: str, **passwords: str) -> None:
    """Writes the credentials of each tenant; of `everybody`: those that all tenants may use."""
    found = {owner: {"auths": {host: {"auth": auth}}} for owner, auth in passwords.items()}
    common = found.pop("everybody", {"auths": {}})
    (cluster.home / registries.FILE).write_text(json.dumps({**common, "tenants": found}))


def run(cluster, tenant: str, image: str, index: int) -> Observation:
    """How a pod of this tenant ends in this image."""
    return cluster.ended(cluster.started(of_tenant(cluster, tenant, index=index, image=image, script="echo in")))


def test_image_of_one_tenant_is_not_that_of_another(containers, registry, podman, private) -> None:
    """The engine has the image, and gives it to whoever names it. The registry decides."""
    allow(containers, registry.host, a=registry.auth(registry.password))
    assert run(containers, "a", private, 0).phase == PodPhase.SUCCEEDED
    assert private in names_of_images(podman)
    number = podman.engine.request("GET", f"/images/{private}/json")["Id"]
    for index, name in enumerate((private, number, f"localhost/x@{digest_of(podman, private)}")):
        pod = run(containers, "b", name, index)
        assert (pod.phase, pod.reason) == (PodPhase.FAILED, "ImagePullFailed"), name
        assert "in\n" not in containers.log(pod.key)
    allow(containers, registry.host, a=registry.auth(registry.password), b=registry.auth("wrong"))
    assert "unauthorized" in run(containers, "b", private, 3).message
    allow(containers, registry.host, b=registry.auth(registry.password))
    assert run(containers, "b", private, 4).phase == PodPhase.SUCCEEDED
    assert run(containers, "a", private, 1).phase == PodPhase.FAILED, "it has lost its credentials"


def digest_of(podman, image: str) -> str:
    """The digest of its manifest."""
    found = podman.engine.request("GET", f"/images/{image}/json")["RepoDigests"]
    return str(next(name for name in found if name.startswith(image.rpartition(":")[0]))).partition("@")[2]


def test_image_is_private_although_nobody_has_credentials_any_more(containers, registry, private) -> None:
    allow(containers, registry.host, everybody=registry.auth(registry.password))
    assert run(containers, "a", private, 0).phase == PodPhase.SUCCEEDED
    (containers.home / registries.FILE).unlink()
    pod = run(containers, "a", private, 1)
    assert (pod.phase, pod.reason) == (PodPhase.FAILED, "ImagePullFailed")


def test_image_needs_no_registry_after_a_pull_with_the_same_credentials(containers, registry, private) -> None:
    allow(containers, registry.host, everybody=registry.auth(registry.password))
    assert run(containers, "a", private, 0).phase == PodPhase.SUCCEEDED
    registry.stop()
    try:
        assert run(containers, "b", private, 0).phase == PodPhase.SUCCEEDED
    finally:
        registry.start()


def test_image_of_the_machine_is_for_all_also_if_a_private_one_is_the_same(containers, registry, podman, private):
    allow(containers, registry.host, a=registry.auth(registry.password))
    assert run(containers, "a", private, 0).phase == PodPhase.SUCCEEDED
    assert run(containers, "b", podman.image, 0).phase == PodPhase.SUCCEEDED


# Parts of volumes


def volume(*mounts: VolumeMount, source: Mapping[str, Any] = CLAIM) -> dict[str, Any]:
    """A volume for each name in these mounts."""
    return {"volumes": [VolumeSpec(name=name, **source) for name in {m.name for m in mounts}], "volume_mounts": mounts}


def part(path: str = "/part") -> VolumeMount:
    return VolumeMount(name="v", mount_path=path, sub_path="deep/part")


def test_part_of_a_volume_is_mounted_anywhere(containers):
    whole = VolumeMount(name="v", mount_path="/data")
    assert output(containers, "echo 1 > /part/x; cat /data/deep/part/x", **volume(whole, part())) == "1\n"
    assert output(containers, "cat /part/x /two/x", index=1, **volume(part(), part("/two"))) == "1\n1\n"


@contextmanager
def paused(process: int) -> Iterator[None]:
    os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process, signal.SIGCONT)


@pytest.mark.parametrize("is_checked", [True, False])
def test_part_that_is_replaced_by_a_link_is_not_mounted(containers, podman, tmp_path, monkeypatch, is_checked):
    """The positive control does not check: the engine follows the link."""
    engine = EngineInfo("Podman", "4.3.1", frozenset())
    monkeypatch.setattr(Runtime, "info", lambda _self: engine)
    if not is_checked:
        monkeypatch.setattr(container_orders, "_parts", lambda *_arguments: [])
    (tmp_path / "elsewhere").mkdir(mode=0o755)
    (tmp_path / "elsewhere" / "file").write_text("SECRET")
    order = containers.order(script="cat /part/file", **volume(part()))
    with paused(podman.pid):
        containers.start(order)
        place = Path(folder_of(containers, order.key).claims, "v", "deep", "part")
        place.rename(place.with_name("aside"))
        place.symlink_to(tmp_path / "elsewhere")
    pod = containers.ended(order.key)
    assert (pod.reason == "StartRefused", "SECRET" in containers.log(order.key)) == (is_checked, not is_checked)
    assert podman.containers() == []


def test_part_is_refused_if_the_engine_cannot_check_it(containers, monkeypatch):
    engine = EngineInfo("Docker", "25.0.1", frozenset())
    monkeypatch.setattr(Runtime, "info", lambda _self: engine)
    with pytest.raises(StartRefused, match="only below /work: with Docker"):
        containers.start(containers.order(**volume(part())))
    containers.start(containers.order(1, **volume(part("/work/part"))))


def test_pod_sees_only_the_volumes_that_it_mounts(containers):
    """In the folder of all, it could put a link in the place of one, and the engine would mount that for another."""
    other = VolumeMount(name="other", mount_path="/work/data")
    assert output(containers, "echo 1 > data/x", **volume(other)) == ""
    script = 'ls "$(dirname "$(readlink data)")"'
    assert output(containers, script, index=1, **volume(VolumeMount(name="v", mount_path="/work/data"))) == "v\n"
