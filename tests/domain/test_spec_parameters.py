"""The settings of a job that a comparison shows."""

import pytest

from hekla.domain.spec_parameters import MAX_SETTINGS, MAX_VALUE, spec_parameters


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["train", "--lr", "0.1", "--amp"], {"lr": "0.1", "amp": "yes", "command": "train"}),
        (["train", "--lr=0.1", "-n", "-3"], {"lr": "0.1", "n": "-3", "command": "train"}),
        (["train", "model.lr=0.1", "+seed=2"], {"model.lr": "0.1", "seed": "2", "command": "train"}),
        (["sh", "-c", "python train.py --lr 1"], {"lr": "1", "command": "python train.py"}),
        (["sh", "-c", "echo 'open"], {"command": "echo ''\"'\"'open'"}),
        (["train", "--verbose", "--lr", "1"], {"verbose": "yes", "lr": "1", "command": "train"}),
        ([], {"command": ""}),
    ],
)
def test_options_are_settings(command: list[str], expected: dict[str, str]) -> None:
    assert spec_parameters({"tasks": [{"name": "main", "command": command}]}) == expected


def test_settings_of_several_tasks_have_their_names() -> None:
    tasks = [
        {"name": name, "env": {"LR": "1", "HEKLA_SIM_SECONDS": "9"}, "resources": {"cpu": "2"}, "replicas": 3}
        for name in ("ps", "worker")
    ]
    found = spec_parameters({"queue": "gold", "priority": 3, "tasks": tasks, "files": {"a": "b"}})
    assert found == {
        "queue": "gold", "priority": "3", "ps.command": "", "ps.LR": "1", "ps.replicas": "3", "ps.cpu": "2",
        "worker.command": "", "worker.LR": "1", "worker.replicas": "3", "worker.cpu": "2",
    }  # fmt: skip


def test_values_are_cut() -> None:
    assert spec_parameters({"tasks": [{"env": {"A": "x" * 10_000}}]})["A"] == "x" * MAX_VALUE


def test_settings_are_bounded() -> None:
    script = " ".join(f"a{number}=1" for number in range(9_000))
    tasks = [{"name": f"t{number}", "command": ["sh", "-c", script]} for number in range(64)]
    assert len(spec_parameters({"queue": "gold", "tasks": tasks})) == MAX_SETTINGS
    quoted = spec_parameters({"tasks": [{"command": ["sh", "-c", f"'{'x' * 65_000}'"]}]})
    assert len(quoted["command"]) == MAX_VALUE
