"""Removal of a job on the local backend, and the inventory of what is really there."""

import os
import signal
from pathlib import Path

from tests.backends.local.test_processes import alive, eventually, folder_of, folder_without_shim, with_family

from hekla.backends.base import Inventory
from hekla.backends.local import isolation, removal
from hekla.backends.local.sandbox.order import LAYERS
from hekla.domain.phases import PodPhase

NOTHING = Inventory(frozenset(), frozenset(), frozenset())


def test_log_and_status_of_a_removed_pod_remain(local):
    key = local.started(local.order(script="echo said; mkdir -m 0 locked; touch left", files={"a/b": "c"}))
    folder = folder_without_shim(local, key)
    draft = Path(folder.path).with_name(".draft-1")
    draft.mkdir()
    assert local.backend.inventory().present == {"job"}
    local.backend.remove("job")
    assert sorted(os.listdir(folder.path)) == ["log", "log.times", "status.json"]
    assert not draft.exists()
    local.backend.remove_logs("job")
    assert local.backend.inventory() == NOTHING


def test_inventory_finds_processes_that_outlive_their_shim(local, monkeypatch):
    """Namespaces end them; without, they go on until they are found."""
    monkeypatch.setattr(isolation, "failures", lambda: dict.fromkeys(LAYERS, "not here"))
    key, family = with_family(local)
    folder = folder_of(local, key)
    shim = folder.holder()
    os.kill(shim, signal.SIGKILL)
    assert eventually(lambda: not alive(shim))
    assert local.backend.inventory().alive == {key}
    local.ended(key)
    assert eventually(lambda: local.backend.inventory().alive == frozenset())
    assert eventually(lambda: not any(alive(pid) for pid in family.values()))


def test_empty_inventory(local):
    assert local.backend.inventory() == NOTHING


def test_inventory_ignores_pods_of_other_folders_and_invalid_marks(local, make_cluster):
    other = make_cluster("local")
    other.until(other.started(other.long(7)), PodPhase.RUNNING)
    garbled = local.started(local.order(script="export HEKLA_POD=garbled; exec sleep 1000"))
    local.until(garbled, PodPhase.RUNNING)
    assert local.backend.inventory().alive == {garbled}


def test_folders_nested_deeper_than_a_recursion_are_deleted(local):
    place = os.open(local.home, os.O_RDONLY)
    for _ in range(1200):
        os.mkdir("deep", dir_fd=place)
        inner = os.open("deep", os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = inner
    os.symlink("/etc", "outside", dir_fd=place)
    os.close(place)
    removal.delete(local.home / "deep")
    assert not (local.home / "deep").exists()
    assert Path("/etc/passwd").exists()
