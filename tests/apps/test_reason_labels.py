"""Every pending reason of the engine has its own correct sentence."""

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
    defaults = {"need": {"cpu": "4"}, "have": {"cpu": "1"}, "tasks": 2, "nodes": {}, "plugin": "p", "ever": True}
    return labels.reason(defaults | {"code": code, "cause": cause} | more)


@pytest.mark.parametrize(
    ("code", "cause", "sentence"),
    [
        ("queue_is_full", "quota", "Waiting for 4 CPU. The limit of its queue leaves 1 CPU."),
        ("parent_queue_is_full", "quota", "Waiting for 4 CPU. The limit of a parent queue leaves 1 CPU."),
        ("queue_share_used", "quota", "Waiting for 4 CPU. The queue has 1 CPU of its share left."),
        ("queue_overused", "quota", "Waiting for 4 CPU. The queue uses all of its share."),
        ("queue_tree_cycle", "quota", "The parent queues form a cycle. Change the parent of the queue."),
        ("queue_parent_missing", "quota", "A parent queue does not exist. Change the parent of the queue."),
        ("queue_has_children", "quota", "The queue has child queues. Jobs start only in leaf queues."),
        ("namespace_quota", "quota", "Waiting for 4 CPU. The quota of its tenant leaves 1 CPU."),
        ("cluster_is_full", "capacity", "Waiting for 4 CPU. Running and admitted jobs leave 1 CPU."),
        ("no_node_fits", "capacity", "Waiting for 4 CPU. 1 CPU is free."),
        ("plugin_failed", "policy", "Plugin “p” of the scheduling policy failed. No pod starts until it is fixed."),
        ("not_enough_pods", "gang", "The job has fewer pods than its minimum: 2 are missing."),
    ],
)
def test_reasons_name_needed_and_available_amounts(code: str, cause: str, sentence: str) -> None:
    assert reason(code, cause) == sentence


def test_quota_reasons_have_figures() -> None:
    figures = {"need": {"nvidia.com/gpu": "4"}, "used": {"nvidia.com/gpu": "6"}, "most": {"nvidia.com/gpu": "8"}}
    expected = "Waiting for 4 GPU. Quota of its tenant: 6 of 8 GPU in use."
    assert reason("tenant_quota", **figures) == expected
    zero_quota = {"need": {"cpu": "1"}, "used": {}, "most": {}}
    expected = "Waiting for 1 CPU. Quota of its owner in this tenant: 0 of 0 CPU in use."
    assert reason("member_quota", **zero_quota) == expected


def test_parts_of_gpus_have_the_unit_of_memory() -> None:
    more = {"need": {"volcano.sh/gpu-memory": "16384"}, "have": {"volcano.sh/gpu-memory": "15543"}}
    expected = "Waiting for 16 GiB GPU memory. Running and admitted jobs leave 15.2 GiB GPU memory."
    assert reason("cluster_is_full", "capacity", **more) == expected


def test_impossible_request_is_not_reported_as_a_full_cluster() -> None:
    expected = "Needs 4 CPU. The cluster is smaller than that. The job can never start with its current settings."
    assert reason("cluster_is_full", "capacity", ever=False) == expected


def test_unknown_share_has_no_dash() -> None:
    assert reason("queue_share_used", have={}) == "Waiting for 4 CPU. The queue has used its share."


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("queue_is_full", "Waiting for 4 CPU. The limit of its queue leaves 0 CPU."),
        ("namespace_quota", "Waiting for 4 CPU. The quota of its tenant leaves 0 CPU."),
        ("no_node_fits", "Waiting for 4 CPU. The cluster has none free."),
    ],
)
def test_nothing_left_is_no_dash(code: str, sentence: str) -> None:
    assert reason(code, "capacity", have={}) == sentence


def test_nodes_are_counted_by_missing_resource() -> None:
    assert reason("no_domain_fits", "capacity", nodes={"insufficient cpu": 3}) == (
        "Its pods must be close together. No node group has room for all of them (3 nodes: not enough CPU)."
    )


def test_every_engine_refusal_has_a_phrase() -> None:
    texts = [path.read_text(encoding="utf-8") for path in ENGINE.rglob("*.py")]
    phrases = {phrase for text in texts for phrase in re.findall(r'Refusal\([^"\n]*, "([^"{]+)"', text)}
    assert len(phrases) > 15, "the search pattern is broken"
    assert phrases <= set(quota_messages.SENTENCES)


@pytest.mark.parametrize(
    ("refusal", "words"),
    [
        ("insufficient nvidia.com/gpu", "not enough GPU"),
        ("insufficient memory", "not enough memory"),
        ("insufficient example.com/fpga", "not enough example.com/fpga"),
        ("taint spot", "untolerated taint spot"),
        ("cpu usage is too high", "too busy: CPU"),
        ("the extender says no", "the extender says no"),
    ],
)
def test_phrases_of_node_refusals(refusal: str, words: str) -> None:
    assert quota_messages.render_reason(refusal) == words


def test_impossible_job_is_reported() -> None:
    assert reason("not_valid", "policy", ever=False).endswith(" The job can never start with its current settings.")


def test_every_reason_code_has_a_sentence() -> None:
    codes = set()
    for path in ENGINE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        codes |= set(re.findall(r'code="(\w+)"', text))
        codes |= set(re.findall(r'Reason\(Cause\.\w+, [^)]*?"([a-z]+_[a-z_]+)"', text))
        codes |= set(re.findall(r'return Cause\.\w+, "(\w+)"', text))
        codes |= set(re.findall(r'^[A-Z_]+ = "(queue_\w+)"', text, re.MULTILINE))
        codes |= set(re.findall(r'Aftermath\([^)]*"(\w+)"\)', text))
        codes |= set(re.findall(r'_forbid\([^)]*?"(\w+)"', text))
    assert len(codes) > 17, "the search pattern is broken"
    assert codes <= set(labels._BY_CODE) | BY_CAUSE


def test_every_plugin_that_protects_pods_has_a_phrase() -> None:
    """Also every reason for which an action itself excludes candidates."""
    extension_points = re.compile(r"Point\.(PREEMPTABLE|RECLAIMABLE|EVICTABLE|SPARED)\b[^)]")
    files = [path for path in (ENGINE / "plugins").rglob("*.py") if "register" in path.read_text(encoding="utf-8")]
    plugins = {
        path.relative_to(ENGINE / "plugins").parts[0].removesuffix(".py").replace("_", "-")
        for path in files
        if extension_points.search(path.read_text(encoding="utf-8"))
    }
    assert len(plugins - {"rescheduling"}) > 8, "the search pattern is broken"
    assert plugins - {"rescheduling"} <= set(victims.SPARED)
    assert set(victims.BARRED) == set(Exclusion)


def victim_counts(**facts: object) -> dict[str, object]:
    """Counts of eviction candidates, as the controller stores them."""
    defaults = {"spared": {}, "too_little": 0, "in_vain": 0, "barred": {}, "nodes": 2, "of_nodes": 2}
    return defaults | facts


@pytest.mark.parametrize(
    ("code", "facts", "sentence"),
    [
        ("nobody_preempted", {}, "No other job of its queue has a pod to preempt."),
        ("nobody_reclaimed", {}, "No other queue has a pod to reclaim."),
        (
            "nobody_preempted",
            {"spared": {"gang": 3, "priority": 12}, "too_little": 1},
            "No other job of its queue can be preempted: 12 pods do not have lower priority; 3 pods belong to jobs at "
            "their minimum; evicting 1 pod would free too little.",
        ),
        (
            "nobody_reclaimed",
            {"spared": {"proportion": 2}, "in_vain": 4, "barred": {"queue_not_reclaimable": 1}, "of_nodes": 90},
            "No other queue has pods to reclaim: 2 pods belong to queues within their deserved share; "
            "after evicting 4 pods the job still could not start; 1 pod belongs to a queue that is not reclaimable; "
            "only 2 of 90 nodes were checked.",
        ),
        (
            "nobody_preempted",
            {"spared": {"mine": 1, "": 2}},
            "No other job of its queue can be preempted: no plugin of the scheduling policy allows evicting 2 pods; "
            "plugin “mine” protects 1 pod.",
        ),
    ],
)
def test_sentences_about_eviction_candidates(code: str, facts: dict[str, object], sentence: str) -> None:
    assert reason(code, victims=victim_counts(**facts)) == sentence


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("never_evicts", "2 of its pods never evict other pods."),
        ("queue_takes_nothing", "Its queue cannot reclaim from others. It would exceed its deserved share."),
        ("victims_not_counted", "No pod can be evicted for it. Candidates were counted only for the jobs before it."),
    ],
)
def test_reasons_without_candidates(code: str, sentence: str) -> None:
    assert reason(code) == sentence


def test_phrases_have_singular_and_plural() -> None:
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
            "Its queue used 200% of its deserved share and uses 120% now. The other queue went from 0% to 50%.",
        ),
        ([{"of": "queue", "giver": HALVED}], "Its queue used 100% of its deserved share and uses 50% now."),
        (
            [
                {"of": "queue", "giver": {"before": 1.0, "after": 1.0}, "taker": {"before": 1.0, "after": 1.0}},
                {"of": "job", "giver": HALVED, "taker": GREW},
            ],
            "Its job used 100% of the cluster and uses 50% now. The other job went from 0% to 50%.",
        ),
    ],
)
def test_sentences_about_share_changes(shares: list[dict[str, object]], sentence: str) -> None:
    assert victims.describe_shares({"shares": shares}) == sentence


@pytest.mark.parametrize(("language", "expected"), [("en", "One. Two."), ("zh-hans", "One.Two.")])
def test_chinese_has_no_space_between_sentences(language: str, expected: str) -> None:
    with translation.override(language):
        assert together(["One.", "", "Two."]) == expected


def test_only_scarce_resources_are_named() -> None:
    full = {"need": {"cpu": "2", "memory": "1Gi"}, "have": {"cpu": "1", "memory": "23Gi"}}
    assert reason("cluster_is_full", "capacity", **full) == (
        "Waiting for 2 CPU. Running and admitted jobs leave 1 CPU."
    )
    assert reason("queue_is_full", **full) == "Waiting for 2 CPU. The limit of its queue leaves 1 CPU."
    assert reason("no_node_fits", "capacity", nodes={"insufficient cpu": 3}, **full) == (
        "Waiting for 2 CPU. No node has room (3 nodes: not enough CPU)."
    )


def test_resources_that_are_scarce_only_together_are_all_named() -> None:
    """Each node lacks another resource: no amount is too small by itself."""
    nodes = {"insufficient cpu": 1, "insufficient memory": 1}
    sentence = reason("no_node_fits", "capacity", need={"cpu": "2"}, have={"cpu": "3"}, nodes=nodes)
    assert sentence.startswith("Waiting for 2 CPU. No node has room (")
    assert sentence.endswith("not enough memory).")
