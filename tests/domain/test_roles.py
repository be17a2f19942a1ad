"""Frameworks whose pods have roles and one that leads: who learns what, and what is asked wrongly."""

import pytest
from tests.domain.test_frameworks import job, told

from hekla.domain.errors import Invalid

MXNET = {"scheduler": 1, "server": 2, "worker": 2}


@pytest.mark.parametrize(
    ("arguments", "replicas", "pod", "expected"),
    [
        (
            {"mxnet": []},
            MXNET,
            ("server", 1),
            {
                "DMLC_ROLE": "server",
                "DMLC_PS_ROOT_URI": "127.0.0.2",
                "DMLC_PS_ROOT_PORT": "9091",
                "DMLC_NUM_SERVER": "2",
                "DMLC_NUM_WORKER": "2",
                "DMLC_NODE_HOST": "127.0.0.4",
            },
        ),
        ({"mxnet": ["--port=9000"]}, MXNET, ("scheduler", 0), {"DMLC_ROLE": "scheduler", "DMLC_PS_ROOT_PORT": "9000"}),
        (
            {"mxnet": ["--server=ps"]},
            {"ps": 1, "scheduler": 1, "worker": 1},
            ("ps", 0),
            {"DMLC_ROLE": "server", "DMLC_PS_ROOT_URI": "127.0.0.3", "DMLC_NODE_HOST": "127.0.0.2"},
        ),
    ],
)
def test_a_pod_learns_its_role_and_who_leads(arguments, replicas, pod, expected):
    env = told(job(arguments, **replicas), *pod).env
    assert {name: env.get(name) for name in expected} == expected


@pytest.mark.parametrize(("plugin", "replicas", "prefix"), [("mxnet", MXNET, "DMLC_")])
def test_pods_without_a_role_are_told_nothing_of_it(plugin, replicas, prefix):
    spec = job({plugin: []}, **replicas, logger=1)
    assert [name for name in told(spec, "logger", 0).env if name.startswith(prefix)] == []
    assert spec.remarks == ()


@pytest.mark.parametrize(
    ("plugins", "replicas", "sentences"),
    [
        (
            {"mxnet": ["--server=ps"]},
            {"worker": 1},
            [
                "No task is called “scheduler”; say which one it is with --scheduler=NAME (worker).",
                "No task is called “ps”",
            ],
        ),
        ({"mxnet": []}, MXNET | {"scheduler": 2}, ["There is one scheduler, and “scheduler” has 2 replicas."]),
        ({"mxnet": []}, MXNET | {"server": 0}, ["The task “server” has no replica."]),
        ({"mxnet": ["--server=worker"]}, MXNET, ["One task cannot have two of these roles"]),
    ],
)
def test_what_is_wrong_is_told_at_once(plugins, replicas, sentences):
    with pytest.raises(Invalid) as raised:
        job(plugins, **replicas)
    problems = raised.value.problems
    assert {problem.path for problem in problems} == {f"plugins.{name}" for name in plugins}
    assert len(problems) == len(sentences)
    assert all(problem.message.startswith(start) for problem, start in zip(problems, sentences, strict=True))
