"""Pod folders in which anything may be: the console reads them without a leak, and without waiting."""

import contextlib
import os
import random
import shutil
from pathlib import Path

import pytest
from tests.support.examples import examples
from tests.support.hostile_folders import SECRET, fill, no_waiting

from hekla.backends.base import BackendError, PodKey, UnknownPod
from hekla.backends.log_search import LogQuery, search_log
from hekla.domain.phases import PodPhase

FOLDERS = examples(1000)


@pytest.fixture
def secret(local) -> Path:
    folder = local.home / "kept"
    folder.mkdir()
    (folder / "secret-key").write_text(SECRET)
    return folder / "secret-key"


@pytest.mark.parametrize("part", range(4))
def test_hostile_folders_are_read_without_a_leak(local, secret, part):
    chance = random.Random(part)
    good = local.started(local.order(job="good", script="echo fine"))
    local.ended(good)
    for number in range(FOLDERS // 4):
        key = PodKey(f"job{number}", "worker", 0, 0)
        folder = local.home / "local" / "c1" / "pods" / key.job / key.name
        fill(folder, secret, chance)
        (local.home / "local" / "c1" / "active" / f"{key.job}:worker-0-0").touch()
        with no_waiting():
            found = read_all(local, key)
        assert SECRET not in found, sorted(os.listdir(folder))
        assert local.observation(good).phase == PodPhase.SUCCEEDED
        assert local.log(good) == "fine\n"
        with no_waiting():
            with contextlib.suppress(BackendError):
                local.backend.remove(key.job)
            local.backend.remove_logs(key.job)
        assert secret.read_text() == SECRET
        assert not folder.exists()


def read_all(cluster, key: PodKey) -> str:
    """What every way to the folder of a pod returns."""
    backend, parts = cluster.backend, []
    parts += [str(one) for one in backend.observe(None).pods]
    parts.append(str(backend.inventory()))
    chunk = backend.logs(key, offset=0, limit=65536)
    parts.append(chunk.data.decode(errors="replace"))
    parts.append(str(search_log(backend, key, LogQuery("secret"), offset=0, line=1, most=9, ended=True)))
    parts.append(str(backend.measure([key])))
    return "".join(parts)


def test_link_in_the_place_of_a_pod_or_job_is_no_pod(local, secret):
    """Nor is what it leads to read or deleted."""
    good = local.started(local.order(job="good", script="echo fine"))
    local.ended(good)
    pods = local.home / "local" / "c1" / "pods"
    (pods / "other").mkdir()
    (pods / "other" / "other-worker-0-0").symlink_to(pods / "good" / good.name)
    (pods / "third").symlink_to(pods / "good")
    for key in (PodKey("other", "worker", 0, 0), PodKey("third", "worker", 0, 0)):
        with pytest.raises(UnknownPod):
            local.backend.logs(key, offset=0, limit=100)
        local.backend.remove_logs(key.job)
    assert local.log(good) == "fine\n"
    shutil.rmtree(pods / "good")
