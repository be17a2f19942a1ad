"""Every reason that the engine can give has its own true sentence."""

import re
from typing import Any

import pytest
from django.utils import translation

from hekla.apps.job_history import labels, quota_messages, victims
from hekla.apps.sentences import together
from hekla.engine.decisions import Exclusion
from hekla.project.settings import CHECKOUT

ENGINE = CHECKOUT / "platform" / "hekla" / "engine"
BY_CAUSE = {"no_node_fits", "queue_share_used"}
"""Reasons that share the sentence of their cause."""


def reason(code: str, cause: str = "quota", **more: Any) -> str:
    plain = {"need": {"cpu": "4"}, "have": {"cpu": "1"}, "tasks": 2, "nodes": {}, "plugin": "p", "ever": True}
    return labels.reason(plain | {"code": code, "cause": cause} | more)


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


def test_a_quota_is_told_with_its_figures() -> None:
    figures = {"need": {"nvidia.com/gpu": "4"}, "used": {"nvidia.com/gpu": "6"}, "most": {"nvidia.com/gpu": "8"}}
    told = "It needs 4 GPU, and its tenant uses 6 of 8 GPU that it may use at once."
    assert reason("tenant_quota", **figures) == told
    nothing = {"need": {"cpu": "1"}, "used": {}, "most": {}}
    told = "It needs 1 CPU, and its owner uses 0 of 0 CPU that they may use at once in this tenant."
    assert reason("member_quota", **nothing) == told


def test_more_than_a_cluster_has_is_not_said_to_be_given_out() -> None:
    told = "It needs 4 CPU, which is more than the cluster has. It can never start as things are."
    assert reason("cluster_is_full", "capacity", ever=False) == told


def test_a_share_of_which_nothing_is_known_is_not_said_to_be_a_dash() -> None:
    assert reason("queue_share_used", have={}) == "Waits for its queue's share: it needs 4 CPU."


def test_nodes_are_counted_by_what_they_lack() -> None:
    assert reason("no_domain_fits", "capacity", nodes={"insufficient cpu": 3}) == (
        "Its pods must be close together; no group of nodes has room for all of them (3 nodes: not enough CPU)."
    )


def test_every_refusal_of_the_engine_has_its_words() -> None:
    texts = [path.read_text(encoding="utf-8") for path in ENGINE.rglob("*.py")]
    told = {phrase for text in texts for phrase in re.findall(r'Refusal\([^"\n]*, "([^"{]+)"', text)}
    assert len(told) > 15, "the extraction itself has broken"
    assert told <= set(quota_messages.SENTENCES)


@pytest.mark.parametrize(
    ("refusal", "words"),
    [
        ("insufficient nvidia.com/gpu", "not enough GPU"),
        ("insufficient memory", "not enough memory"),
        ("insufficient example.com/fpga", "not enough example.com/fpga"),
        ("taint spot", "taint spot, which it does not tolerate"),
        ("cpu usage is too high", "too busy: CPU"),
        ("the extender says no", "the extender says no"),
    ],
)
def test_a_refusal_of_nodes_is_told_in_words(refusal: str, words: str) -> None:
    assert quota_messages.told(refusal) == words


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
        codes |= set(re.findall(r'Aftermath\([^)]*"(\w+)"\)', text))
        codes |= set(re.findall(r'_forbid\([^)]*?"(\w+)"', text))
    assert len(codes) > 17, "the search itself has broken"
    assert codes <= set(labels._BY_CODE) | BY_CAUSE


def test_every_plugin_that_spares_somebody_has_a_phrase() -> None:
    """And whom an action leaves out by itself."""
    asked = re.compile(r"Point\.(PREEMPTABLE|RECLAIMABLE|EVICTABLE|SPARED)\b[^)]")
    files = [path for path in (ENGINE / "plugins").rglob("*.py") if "register" in path.read_text(encoding="utf-8")]
    speaking = {
        path.relative_to(ENGINE / "plugins").parts[0].removesuffix(".py").replace("_", "-")
        for path in files
        if asked.search(path.read_text(encoding="utf-8"))
    }
    assert len(speaking - {"rescheduling"}) > 8, "the search itself has broken"
    assert speaking - {"rescheduling"} <= set(victims.SPARED)
    assert set(victims.BARRED) == set(Exclusion)


def considered(**facts: object) -> dict[str, object]:
    """Who was considered for eviction, as the controller stores it."""
    plain = {"spared": {}, "too_little": 0, "in_vain": 0, "barred": {}, "nodes": 2, "of_nodes": 2}
    return plain | facts


@pytest.mark.parametrize(
    ("code", "facts", "sentence"),
    [
        ("nobody_preempted", {}, "No other job of its queue has a pod that could give way to it."),
        ("nobody_reclaimed", {}, "No other queue has a pod that could give way to it."),
        (
            "nobody_preempted",
            {"spared": {"gang": 3, "priority": 12}, "too_little": 1},
            "No other job of its queue gives way to it: 12 pods are not less urgent; 3 pods are of jobs that are no"
            " larger than their minimum; 1 pod would leave too little room.",
        ),
        (
            "nobody_reclaimed",
            {"spared": {"proportion": 2}, "in_vain": 4, "barred": {"queue_not_reclaimable": 1}, "of_nodes": 90},
            "No other queue gives anything back for it: 2 pods are of queues that hold no more than they deserve;"
            " 4 pods could go, and still the job could not start; 1 pod is of a queue that gives nothing back;"
            " only 2 of 90 nodes were looked at.",
        ),
        (
            "nobody_preempted",
            {"spared": {"mine": 1, "": 2}},
            "No other job of its queue gives way to it: nothing in the scheduling policy lets 2 pods go; “mine” keeps 1"
            " pod.",
        ),
    ],
)
def test_who_was_considered_and_what_spared_them_is_said(code: str, facts: dict[str, object], sentence: str) -> None:
    assert reason(code, victims=considered(**facts)) == sentence


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("never_evicts", "2 of its pods never evict others."),
        ("queue_takes_nothing", "Its queue takes nothing back from others: it would hold more than it deserves."),
        ("victims_not_counted", "Nobody gives way to it; who could was counted only for the jobs before it."),
    ],
)
def test_why_nobody_was_even_looked_for_is_said(code: str, sentence: str) -> None:
    assert reason(code) == sentence


def test_every_phrase_counts_one_and_many() -> None:
    for phrases in (victims.SPARED, victims.BARRED):
        for name, phrase in phrases.items():
            one, many = (phrase(n) % {"n": n, "plugin": name} for n in (1, 5))
            assert re.search(r"\b1 pod\b", one), name
            assert re.search(r"\b5 pods\b", many), name


HALVED = {"before": 1.0, "after": 0.5}
GREW = {"before": 0.0, "after": 0.5}


@pytest.mark.parametrize(
    ("shares", "sentence"),
    [
        ([], ""),
        (
            [{"of": "queue", "giver": {"before": 2.0, "after": 1.2}, "taker": GREW}],
            "Its queue held 200% of what it deserves and holds 120% now; the other queue 0%, and 50% now.",
        ),
        ([{"of": "queue", "giver": HALVED}], "Its queue held 100% of what it deserves and holds 50% now."),
        (
            [
                {"of": "queue", "giver": {"before": 1.0, "after": 1.0}, "taker": {"before": 1.0, "after": 1.0}},
                {"of": "job", "giver": HALVED, "taker": GREW},
            ],
            "Its job held 100% of the cluster and holds 50% now; the other job 0%, and 50% now.",
        ),
    ],
)
def test_shares_that_moved_are_told(shares: list[dict[str, object]], sentence: str) -> None:
    assert victims.moved({"shares": shares}) == sentence


@pytest.mark.parametrize(("language", "told"), [("en", "One. Two."), ("zh-hans", "One.Two.")])
def test_chinese_leaves_no_space_between_sentences(language: str, told: str) -> None:
    with translation.override(language):
        assert together(["One.", "", "Two."]) == told
