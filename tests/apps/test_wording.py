"""Every reason that the engine can give has its own true sentence."""

import re
from typing import Any

import pytest

from hekla.apps.jobs import wording
from hekla.project.settings import CHECKOUT

ENGINE = CHECKOUT / "platform" / "hekla" / "engine"
BY_CAUSE = {"no_node_fits", "queue_share_used"}
"""Reasons that share the sentence of their cause."""


def reason(code: str, cause: str = "quota", **more: Any) -> str:
    plain = {"need": {"cpu": "4"}, "have": {"cpu": "1"}, "tasks": 2, "nodes": {}, "plugin": "p", "ever": True}
    return wording.reason(plain | {"code": code, "cause": cause} | more)


@pytest.mark.parametrize(
    ("code", "cause", "sentence"),
    [
        ("queue_is_full", "quota", "It needs 4 CPU, and its queue may hold only 1 CPU more."),
        ("parent_queue_is_full", "quota", "It needs 4 CPU, and a queue above its own may hold only 1 CPU more."),
        ("queue_share_used", "quota", "Waits for its queue's share: it needs 4 CPU, and 1 CPU is left."),
        ("queue_overused", "quota", "Its queue holds all of its share already; it needs 4 CPU."),
        ("queue_tree_cycle", "quota", "The queues above its own form a circle; the queue needs another parent."),
        ("queue_parent_missing", "quota", "A queue above its own does not exist; the queue needs another parent."),
        ("queue_has_children", "quota", "Its queue has queues below it, and jobs start only in the lowest ones."),
        ("namespace_quota", "quota", "Its tenant's quota leaves 1 CPU, and it needs 4 CPU."),
        ("cluster_is_full", "capacity", "Waits for 4 CPU; all of the cluster is given out."),
        ("no_node_fits", "capacity", "Waits for 4 CPU; 1 CPU is free."),
        ("plugin_failed", "policy", "“p” in the scheduling policy failed; nothing starts until that is repaired."),
        ("not_enough_pods", "gang", "It has fewer pods than it needs to start: 2 are missing."),
    ],
)
def test_a_reason_says_what_is_needed_and_what_there_is(code: str, cause: str, sentence: str) -> None:
    assert reason(code, cause) == sentence


def test_a_share_of_which_nothing_is_known_is_not_said_to_be_a_dash() -> None:
    assert reason("queue_share_used", have={}) == "Waits for its queue's share: it needs 4 CPU."


def test_nodes_are_counted_by_what_they_lack() -> None:
    assert reason("no_domain_fits", "capacity", nodes={"insufficient cpu": 3}) == (
        "Its pods must be close together; no group of nodes has room for all of them (3 nodes: insufficient cpu)."
    )


def test_what_can_never_be_is_said() -> None:
    assert reason("not_valid", "policy", ever=False).endswith(" It can never start as things are.")


def test_every_code_of_the_engine_has_a_sentence() -> None:
    codes = set()
    for path in ENGINE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        codes |= set(re.findall(r'code="(\w+)"', text))
        codes |= set(re.findall(r'Reason\(Cause\.\w+, [^)]*?"([a-z]+_[a-z_]+)"', text))
        codes |= set(re.findall(r'return Cause\.\w+, "(\w+)"', text))
        codes |= set(re.findall(r'^[A-Z_]+ = "(queue_\w+)"', text, re.MULTILINE))
    assert len(codes) > 12, "the search itself has broken"
    assert codes <= set(wording._BY_CODE) | BY_CAUSE
