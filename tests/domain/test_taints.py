"""Taints and their text."""

import pytest

from hekla.domain.taints import Taint

TEXTS = [
    (Taint("gpu"), "gpu:NoSchedule"),
    (Taint("example.com/gpu", "a100", "NoExecute"), "example.com/gpu=a100:NoExecute"),
    (Taint("k", effect="PreferNoSchedule"), "k:PreferNoSchedule"),
]


@pytest.mark.parametrize(("taint", "text"), TEXTS)
def test_taint_is_read_back_from_its_text(taint: Taint, text: str) -> None:
    assert str(taint) == text
    assert Taint.parse(text) == taint


@pytest.mark.parametrize(("key", "passes"), [("node.kubernetes.io/disk-pressure", True), ("gpu", False)])
def test_taints_of_conditions(key: str, passes: bool) -> None:
    assert Taint(key).is_of_condition == passes
