"""What is deleted with a job on this machine, and what an inventory finds whatever the records say."""

import os
import signal
from pathlib import Path

from tests.backends.local.test_processes import alive, eventually, folder_of, with_family, without_shim

from hekla.backends.base import Inventory
from hekla.domain.phases import PodPhase

NOTHING = Inventory(frozenset(), frozenset(), frozenset())


def test_of_a_pods_folder_log_and_status_stay(local):
    key = local.started(local.order(script="echo said; mkdir -m 0 locked; touch left", files={"a/b": "c"}))
    folder = without_shim(local, key)
    draft = Path(folder.path).with_name(".draft-1")
    draft.mkdir()
    assert local.backend.inventory().present == {"job"}
    local.backend.remove("job")
    assert sorted(os.listdir(folder.path)) == ["log", "status.json"]
    assert not draft.exists()
    local.backend.remove_logs("job")
    assert local.backend.inventory() == NOTHING


def test_an_inventory_finds_what_outlives_its_shim(local):
    key, family = with_family(local)
    folder = folder_of(local, key)
    shim = folder.holder()
    os.kill(shim, signal.SIGKILL)
    assert eventually(lambda: not alive(shim))
    assert local.backend.inventory().alive == {key}
    local.ended(key)
    assert eventually(lambda: local.backend.inventory().alive == frozenset())
    assert eventually(lambda: not any(alive(pid) for pid in family.values()))


def test_an_inventory_of_nothing_is_empty(local):
    assert local.backend.inventory() == NOTHING


def test_pods_of_other_folders_and_marks_that_are_none_do_not_count(local, make_place):
    other = make_place("local")
    other.until(other.started(other.long(7)), PodPhase.RUNNING)
    garbled = local.started(local.order(script="export HEKLA_POD=garbled; exec sleep 1000"))
    local.until(garbled, PodPhase.RUNNING)
    assert local.backend.inventory().alive == {garbled}
