"""Errors are in the language of Accept-Language; the default is English."""

from typing import Any

import pytest
from rest_framework.test import APIClient
from tests.api.conftest import job

JOBS = "/api/v1/jobs"


def _task(**changes: Any) -> dict[str, Any]:
    return {"name": "worker", "command": ["true"], **changes}


WRONG_JOBS = [
    ({"name": "Ä"}, "“Ä” is not a valid name. Use lowercase letters a–z", "“Ä”不是有效的名称：请使用小写字母 a–z"),
    (
        {"tasks": [_task(replikas=2)]},
        "Unknown field “replikas”. Did you mean “replicas”?",
        "这里没有字段“replikas”；您是想写“replicas”吗？",
    ),
    ({"tasks": [_task(replicas="two")]}, "Must be an integer, not “two”.", "应为整数，而不是“two”。"),
    ({"tasks": [_task(replicas=[2])]}, "Must be an integer, not a list.", "应为整数，而不是列表。"),
    ({"tasks": [_task(replicas=-1)]}, "Must be at least 0, not -1.", "应不小于 0，而不是-1。"),
    ({"tasks": [_task(command="train me")]}, 'for example ["train", "me"], not one', '例如 ["train", "me"]，'),
    ({"tasks": [_task(resources={"cpu": "2x"})]}, "“2x” is not an amount. Examples:", "“2x”不是有效的数量；请写成例如"),
    ({"tasks": [_task(), _task()]}, "Another task has the name “worker”.", "已有另一个任务名为“worker”。"),
    ({"tasks": []}, "At least one is required.", "至少要有一项。"),
    ({"min_available": 5}, "The tasks have 1 replicas in total, so 5 can", "所有任务合计 1 个副本，因此不可能"),
    ({"policies": [{"action": "Restart", "events": ["*"]}]}, "is not one of AbortJob,", "不在可选值之中：AbortJob,"),
    (
        {"plugins": {"svc": ["--x=1"]}},
        "The plugin svc has no argument “--x=1”. Supported arguments:",
        "插件 svc 没有参数“--x=1”；支持的参数有",
    ),
    (
        {"plugins": {"ssh": ["--ssh-port=0"]}},
        "--ssh-port must be a port from 1 to",
        "--ssh-port 应为 1 到 65535 之间的端口",
    ),
]


@pytest.mark.parametrize(("document", "english", "chinese"), WRONG_JOBS)
def test_job_errors_are_translated(
    alice: APIClient, a_job: dict[str, Any], document: dict[str, Any], english: str, chinese: str
) -> None:
    for language, words in (("zh-CN,zh;q=0.9", chinese), ("en", english), ("", english)):
        answer = alice.post(JOBS, {**a_job, **document}, format="json", headers={"accept-language": language})
        assert answer.status_code == 400
        assert words in " ".join(error["message"] for error in answer.json()["errors"])


FLOW = {"name": "nightly", "steps": [{"name": "a", "job": {"tasks": job()["tasks"]}}]}
SWEEP = {"name": "lr", "parameters": {"lr": [1]}, "job": {"tasks": [_task(command=["{{ lr }}"])]}}
SCHEDULE = {"name": "hourly", "cron": "@hourly", "job": job()}
WRONG_FLOWS_SWEEPS_SCHEDULES = [
    ("flows", {**FLOW, "name": "a" * 53}, "would exceed 53 characters", "作业名称会超过 53 个字符"),
    ("flows", {**FLOW, "steps": FLOW["steps"] * 2}, "Another step has the name", "已有另一个步骤名为“a”。"),
    (
        "flows",
        {"name": "x", "steps": [{"name": "a", "depends_on": ["a"]}]},
        "between steps: a → a.",
        "步骤之间循环等待：a → a。",
    ),
    (
        "batches",
        {**SWEEP, "parameters": {"rate": [1]}},
        "Unknown parameter “lr”. Available: rate.",
        "没有参数“lr”；可选的有：rate。",
    ),
    ("batches", {**SWEEP, "count": 3}, "Only random sweeps have", "只有随机扫描才有抽取数量。"),
    (
        "schedules",
        {**SCHEDULE, "cron": "61 * * * *"},
        "minute: “61” is not a number from 0 to 59.",
        "“分钟”字段中的“61”不是",
    ),
    ("schedules", {**SCHEDULE, "cron": "0 0 31 feb *"}, "the schedule would never run.", "因此定时计划永远不会运行。"),
    (
        "schedules",
        {**SCHEDULE, "time_zone": "Asia/Shanghia"},
        "Unknown time zone",
        "没有时区“Asia/Shanghia”；您是想写“Asia/Shanghai”吗？",
    ),
]


@pytest.mark.parametrize(("kind", "document", "english", "chinese"), WRONG_FLOWS_SWEEPS_SCHEDULES)
def test_flow_sweep_and_schedule_errors_are_translated(
    alice: APIClient, kind: str, document: dict[str, Any], english: str, chinese: str
) -> None:
    for language, words in (("zh-CN", chinese), ("en", english)):
        answer = alice.post(f"/api/v1/{kind}", document, format="json", headers={"accept-language": language})
        assert answer.status_code == 400
        assert words in " ".join(error["message"] for error in answer.json()["errors"])


WRONG_MANIFESTS = [
    (
        "a: 1\nb: c: d",
        "Line 2, column 5: invalid YAML: mapping values",
        "第 2 行第 5 列：不是有效的 YAML：此处不能出现映射的值。",
    ),
    ("a: 1\na: 2", "Line 2, column 1: duplicate key “a”.", "第 2 行第 1 列：“a”出现了两次。"),
    ("a: *b", "the alias “b” is undefined", "别名“b”没有所指，或者所指的内容包含它自己。"),
    (
        "kind: Job\napiVersion: v2",
        "For a Job this must be batch.volcano.sh/v1alpha1 or batch/v1",
        "Job 的此项应为 batch.volcano.sh/v1alpha1 或 batch/v1，",
    ),
    ("kind: Pod", "The text has no job. Exactly one is required:", "文本中没有作业，须有一个："),
    (
        "[1]",
        "Document 1 must be a mapping that begins with apiVersion, not a list.",
        "第 1 个文档应为以 apiVersion 开头的映射，而不是列表。",
    ),
]


@pytest.mark.parametrize(("text", "english", "chinese"), WRONG_MANIFESTS)
def test_manifest_errors_are_translated(alice: APIClient, text: str, english: str, chinese: str) -> None:
    for language, words in (("zh-CN", chinese), ("en", english)):
        sent = {"content_type": "application/yaml", "headers": {"accept-language": language}}
        answer = alice.generic("POST", JOBS, text, **sent)
        assert answer.status_code == 400
        assert words in answer.json()["detail"]


def test_warnings_are_translated(alice: APIClient) -> None:
    text = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: x, namespace: elsewhere, labels: {a: b}}
spec: {tasks: [{name: main, template: {spec: {containers: [{command: ["true"]}]}}}]}
"""
    sent = {"content_type": "application/yaml", "headers": {"accept-language": "zh-CN"}}
    answer = alice.generic("POST", f"{JOBS}?dry_run=true", text, **sent)
    assert answer.json()["warnings"] == [
        "metadata.namespace：已忽略：作业属于为其提交的租户。",
        "metadata.labels：已忽略。",
    ]


def test_action_errors_are_translated(alice: APIClient) -> None:
    made = alice.post(JOBS, job(), format="json").json()["job"]
    sent = {"format": "json", "headers": {"accept-language": "zh-CN"}}
    answer = alice.post(f"{JOBS}/{made['uid']}/actions", {"action": "ResumeJob"}, **sent)
    assert answer.json()["detail"].startswith("作业当前为“等待中”；ResumeJob 只适用于以下阶段的作业：")


OTHER_ERRORS = [
    ("GET", "/api/v1/nowhere", None, 404),
    ("GET", "/api/v1/jobs/6b1f0d0e-0000-4000-8000-000000000000", None, 404),
    ("GET", "/api/v1/jobs?limit=no", None, 400),
    ("GET", "/api/v1/jobs?cursor=no", None, 404),
    ("GET", "/api/v1/jobs?phase=no", None, 400),
    ("GET", "/api/v1/me?what=1", None, 400),
    ("POST", "/api/v1/me", {}, 405),
    ("POST", "/api/v1/tokens", {"name": 5, "what": 1}, 400),
    ("POST", "/api/v1/tokens", {"name": ""}, 400),
    ("POST", "/api/v1/departments", {"slug": "x", "name": "X"}, 403),
    ("GET", "/rest-server/api/v2/nowhere", None, 404),
    ("GET", "/rest-server/api/v2/jobs/alice~none", None, 404),
    ("GET", "/rest-server/api/v2/users/nobody", None, 404),
    ("GET", "/rest-server/api/v2/virtual-clusters/none", None, 404),
    ("GET", "/rest-server/api/v2/jobs?limit=no", None, 400),
    ("PUT", "/rest-server/api/v2/info", {}, 405),
]


@pytest.mark.parametrize(("method", "address", "document", "status"), OTHER_ERRORS)
def test_other_errors_are_translated(
    alice: APIClient, method: str, address: str, document: dict[str, Any] | None, status: int
) -> None:
    found = {}
    for language in ("en", "zh-CN"):
        sent = {"headers": {"accept-language": language}}
        answer = getattr(alice, method.lower())(
            address, document, format="json" if document is not None else None, **sent
        )
        assert answer.status_code == status
        body = answer.json()
        found[language] = [body.get("message") or body["detail"], *(one["message"] for one in body.get("errors", []))]
    assert all(max(text) >= "\u4e00" for text in found["zh-CN"]), found
    assert not any("\u4e00" <= max(text) <= "\u9fff" for text in found["en"]), found
