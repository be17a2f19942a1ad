"""Sweeps: the jobs of a sweep, and their parameters."""

import math
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hekla.domain import sweeps
from hekla.domain.errors import Invalid
from hekla.domain.jobspec import MAX_JOB_NAME, JobSpec
from hekla.domain.sweep_tables import parse_table
from hekla.domain.sweeps import Range, SweepSpec

JOB = {"tasks": [{"name": "main", "command": ["python", "train.py", "--lr={{ lr }}"], "env": {"WIDTH": "{{width}}"}}]}
GRID = {"lr": [0.1, "0.01"], "width": [64, 128, 256]}
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)


def sweep(**changes: object) -> SweepSpec:
    return SweepSpec.parse({"name": "s", "parameters": GRID, "job": JOB, **changes})


def problems(**changes: object) -> dict[str, str]:
    with pytest.raises(Invalid) as raised:
        sweep(**changes).points()
    return {problem.path: problem.message for problem in raised.value.problems}


def test_grid_has_all_combinations_in_order() -> None:
    points = sweep().points()
    assert [(p.number, p.parameters["lr"], p.parameters["width"]) for p in points] == [
        (1, "0.1", "64"), (2, "0.1", "128"), (3, "0.1", "256"),
        (4, "0.01", "64"), (5, "0.01", "128"), (6, "0.01", "256"),
    ]  # fmt: skip
    assert sweep().size() == 6
    task = points[1].spec.tasks[0]
    assert task.command == ("python", "train.py", "--lr=0.1")
    assert task.env == {"WIDTH": "128"}
    assert [p.spec.name for p in points] == [f"s-{n}" for n in range(1, 7)]
    assert sweep().points(most=2) == points[:2]


def test_list_combines_values_by_position() -> None:
    spec = sweep(how="list", parameters={"lr": [1, 2], "width": [3, 4]})
    assert [p.parameters for p in spec.points()] == [{"lr": "1", "width": "3"}, {"lr": "2", "width": "4"}]
    assert spec.size() == 2


RANDOM = {"lr": {"low": 1e-4, "high": 0.1, "log": True}, "width": [64, 128]}


def test_random_sweep_depends_only_on_its_seed() -> None:
    first, again, other = (sweep(how="random", parameters=RANDOM, count=5, seed=seed) for seed in (7, 7, 8))
    assert first.points() == again.points()
    assert [p.parameters for p in first.points()] != [p.parameters for p in other.points()]
    assert [p.parameters["lr"] for p in first.points()[:2]] == ["0.00093648", "0.00897023"]
    assert first.size() == 5


def test_sweep_survives_serialization() -> None:
    for spec in (sweep(), sweep(how="random", parameters=RANDOM, count=5, seed=3)):
        assert SweepSpec.parse(spec.document()) == spec
        assert "name" not in spec.document()["job"]


@given(
    st.floats(-1e100, 1e100), st.floats(-1e100, 1e100), st.booleans(), st.booleans(),
    st.floats(0, 1, exclude_max=True),
)  # fmt: skip
def test_drawn_values_are_in_the_range(one: float, two: float, log: bool, whole: bool, part: float) -> None:
    low, high = min(one, two), max(one, two)
    try:
        drawn = Range(low=low, high=high, log=log, whole=whole).draw(part)
    except ValueError:
        assert (log and low <= 0) or (whole and math.ceil(low) > math.floor(high))
        return
    slack = 1e-5 * max(abs(low), abs(high))
    assert low - slack <= float(drawn) <= high + slack
    assert not whole or drawn.lstrip("-").isdigit()


# Placeholders.


@given(TEXTS, TEXTS)
def test_value_stays_in_its_word_and_is_not_expanded(lr: str, width: str) -> None:
    [point] = sweep(parameters={"lr": [lr], "width": [width]}).points()
    task = point.spec.tasks[0]
    assert task.command == ("python", "train.py", f"--lr={lr}")
    assert task.env["WIDTH"] == width


@pytest.mark.parametrize("evil", ["; rm -rf /", "$(id)", "`id`", "a b", "'", '"', "{{ width }}", "\n", "--flag"])
def test_values_cannot_inject_words_or_placeholders(evil: str) -> None:
    [point] = sweep(parameters={"lr": [evil], "width": ["safe"]}).points()
    command = point.spec.tasks[0].command
    assert (len(command), command[2]) == (3, f"--lr={evil}")
    assert shlex.split(shlex.join(command)) == list(command)


def test_only_commands_and_variables_have_placeholders() -> None:
    job = {**JOB, "description": "{{ lr }}", "files": {"a.txt": "{{ lr }} {{ other }}"}}
    [point] = sweep(job=job, parameters={"lr": [1], "width": [2]}).points()
    assert (point.spec.description, point.spec.files) == ("{{ lr }}", {"a.txt": "{{ lr }} {{ other }}"})


@given(st.dictionaries(st.sampled_from(["a", "b", "c"]), TEXTS, min_size=1), TEXTS)
def test_placeholders_are_filled_in_one_pass(values: dict[str, str], text: str) -> None:
    whole = "".join(f"{text.replace('{', '')}{{{{ {name} }}}}" for name in values)
    assert sweeps.fill(whole, values) == "".join(f"{text.replace('{', '')}{value}" for value in values.values())


# Problems.


@pytest.mark.parametrize(
    ("changes", "path", "message"),
    [
        ({"name": "x" * 41}, "name", "41 characters. The limit is 40."),
        ({"parameters": {}}, "parameters", "At least one"),
        ({"parameters": {"lr": [1]}}, "job.tasks.0.env.WIDTH", "Unknown parameter “width”. Available: lr"),
        ({"parameters": {**GRID, "z": [1]}}, "parameters.z", "uses {{ z }}"),
        ({"parameters": {**GRID, "lr": []}}, "parameters.lr", "At least one"),
        ({"parameters": {**GRID, "lr": "0.1"}}, "parameters.lr", "Must be a list"),
        ({"parameters": {**GRID, "lr": [None]}}, "parameters.lr.0", "Must be a string"),
        ({"parameters": {**GRID, "lr": {"low": 1, "high": 2}}}, "parameters.lr", "Ranges need a random sweep"),
        ({"parameters": {"lr": [*range(100)], "width": [*range(11)]}}, "parameters", "1,100 jobs"),
        ({"parameters": {"lr": [1, 2], "width": [1]}, "how": "list"}, "parameters", "1 and 2"),
        ({"how": "random"}, "count", "Enter the number"),
        ({"count": 3}, "count", "random"),
        ({"how": "random", "count": 1001}, "count", "at most 1000"),
        ({"how": "random", "count": 1, "parameters": {**RANDOM, "lr": {"low": 2, "high": 1}}},
         "parameters.lr.high", "at least 2"),
        ({"how": "random", "count": 1, "parameters": {**RANDOM, "lr": {"low": 0, "high": 1, "log": True}}},
         "parameters.lr.low", "above 0"),
        ({"how": "random", "count": 1, "parameters": {**RANDOM, "lr": {"low": 0.1, "high": 0.9, "whole": True}}},
         "parameters.lr.whole", "no integer"),
        ({"name": "S"}, "name", "lowercase letters"),
        ({"name": "s" * 41}, "name", "The limit is 40"),
        ({"job": {"tasks": []}}, "job.tasks", "At least one"),
        ({"job": {"tasks": [{"name": "m", "command": ["{{ lr }}", "{{ width }}"]}]},
          "parameters": {"lr": ["a", " "], "width": [1]}}, "jobs.2.tasks.0.command.0", "must not be empty"),
    ],
)  # fmt: skip
def test_problem_has_its_path(changes: dict[str, object], path: str, message: str) -> None:
    found = problems(**changes)
    assert list(found) == [path], found
    assert message in found[path]


def test_number_of_problems_is_limited() -> None:
    job = {"tasks": [{"name": "m", "command": ["{{ lr }}"]}]}
    assert len(problems(job=job, parameters={"lr": [" "] * 100})) == sweeps.MAX_PROBLEMS


def test_longest_sweep_name_gives_valid_job_names() -> None:
    spec = sweep(name="x" * sweeps.MAX_NAME)
    assert JobSpec.parse({**spec.job.document(), "name": f"{spec.name}-{sweeps.MAX_JOBS}-r{sweeps.MAX_ATTEMPTS}"})
    assert len(spec.job.name) <= MAX_JOB_NAME


# Parameters as text.


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("lr=0.1,0.01", ("lr", ["0.1", "0.01"])),
        (" lr = 0.1 , 0.01 ", ("lr", ["0.1", "0.01"])),
        ('words="a,b", c', ("words", ["a,b", "c"])),
        ("empty=", ("empty", [""])),
        ("path=a=b", ("path", ["a=b"])),
        ("lr=1e-4..0.1 log", ("lr", {"low": 1e-4, "high": 0.1, "log": True})),
        ("n=1..8 whole", ("n", {"low": 1.0, "high": 8.0, "whole": True})),
        ("file=../data", ("file", ["../data"])),
    ],
)
def test_parameter_text_is_parsed(text: str, want: object) -> None:
    assert sweeps.parse_parameter(text) == want


@pytest.mark.parametrize("text", ["lr", "=1", "1x=2", "a b=1", 'a="b'])
def test_invalid_parameter_text_is_refused_with_a_reason(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not in the form|is not closed"):
        sweeps.parse_parameter(text)


@pytest.mark.parametrize(
    "text",
    ["lr,width\n0.1,64\n0.01,128\n", "\ufefflr\twidth\r\n0.1\t64\r\n\r\n0.01\t128", 'lr; width\n"0.1";64\n0.01;128'],
)
def test_table_has_a_row_for_each_job(text: str) -> None:
    values = parse_table(text)
    assert values == {"lr": ["0.1", "0.01"], "width": ["64", "128"]}
    assert [point.parameters["width"] for point in sweep(how="list", parameters=values).points()] == ["64", "128"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "names of the parameters"),
        ("lr\n", "no row"),
        ("lr,lr\n1,2", "“lr” is there twice"),
        ("lr,width\n1,2\n3", "Row 2 has 1 values. The table has 2 columns"),
        ("lr\n" + "1\n" * 1001, "The limit is 1,000"),
        (",".join("abcdefghijklmnopqrstuvw") + "\n", "The limit is 20"),
        ('lr,width\n"1,2', "quotation mark"),
        ('lr,width\n"1"x,2', "quotation mark"),
    ],
)
def test_wrong_table_is_refused_with_its_row(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_table(text)
