"""The ranking of runs by a metric, and their parallel coordinates."""

import pytest

from hekla.apps.job_metrics import ranking
from hekla.apps.job_metrics.ranking import Run
from hekla.apps.jobs.models import Job
from hekla.pages.runs.parallel import MOST_LINES, parallel


def run(number: int, metrics: dict[str, float], **parameters: str) -> Run:
    figures = {name: {"last": value, "min": value - 1, "max": value + 1, "count": 1} for name, value in metrics.items()}
    return Run(Job(name=f"j-{number}", phase="completed"), figures, parameters, number)


@pytest.mark.parametrize(
    ("words", "best", "goal"),
    [
        ({}, 2, "min"),
        ({"goal": "max"}, 1, "max"),
        ({"metric": "accuracy"}, 3, "max"),
        ({"metric": "accuracy", "goal": "min"}, 2, "min"),
        ({"metric": "unknown", "goal": "upwards", "value": "median"}, 2, "min"),
    ],
)
def test_best_run(words: dict[str, str], best: int, goal: str) -> None:
    runs = [
        run(1, {"val_loss": 3.0}),
        run(2, {"val_loss": 1.0, "accuracy": 0.1}),
        run(3, {"val_loss": 2.0, "accuracy": 0.9}),
        run(4, {}),
    ]
    found = ranking.ranking(runs, **words)
    assert found
    assert found.goal == goal
    chosen = ranking.best_run(runs, found)
    assert chosen
    assert chosen.number == best


@pytest.mark.parametrize(
    ("name", "goal"),
    [
        ("val_loss", "min"), ("train.error", "min"), ("FID", "min"), ("wer_clean", "min"), ("val_ppl", "min"),
        ("confidence", "max"), ("supply", "max"), ("accuracy", "max"),
    ],
)  # fmt: skip
def test_the_name_of_a_metric_says_which_value_is_best(name: str, goal: str) -> None:
    found = ranking.ranking([run(1, {name: 1.0})])
    assert found
    assert found.goal == goal


def test_the_number_of_compared_metrics_is_bounded() -> None:
    runs = [run(n, {"loss": 1.0} | {f"m{n}_{place}": 1.0 for place in range(50)}) for n in range(10)]
    names = ranking.metric_names(runs)
    assert (names[0], len(names)) == ("loss", ranking.MOST_NAMES)


def test_only_parameters_that_differ_vary() -> None:
    runs = [run(1, {}, lr="1", seed="7"), run(2, {}, lr="2", seed="7"), run(3, {}, lr="1", seed="7", extra="x")]
    assert ranking.varying_parameters(runs) == ["lr", "extra"]
    assert ranking.varying_parameters(runs[:1]) == ["lr", "seed"]
    assert ranking.best_run(runs, ranking.ranking(runs)) is None


# Parallel coordinates.


def test_parallel_coordinates() -> None:
    runs = [run(n, {"loss": float(n)}, lr=f"{10.0**-n:g}", kind="ab"[n % 2], n=str(n)) for n in range(1, 6)]
    order = ranking.ranking(runs)
    assert order
    found = parallel(runs, ["lr", "kind", "n"], order)
    assert found
    assert [axis.name for axis in found.axes] == ["lr", "kind", "n", "loss"]
    assert [words for _at, words in found.axes[1].ticks] == ["b", "a"]
    assert {words for _at, words in found.axes[0].ticks} == {"0.1", "0.01", "0.001", "0.0001", "1e-05"}
    assert [line.level for line in found.lines] == [4, 3, 2, 1, 0]
    assert (found.lines[-1].is_best, found.lines[-1].title) == (True, "j-1: lr=0.1 kind=b n=1 loss 1")
    heights = [float(point.split(",")[1]) for point in found.lines[-1].points.split()]
    assert all(found.top <= height <= found.bottom for height in heights)
    assert (heights[0], heights[-1]) == (found.top, found.bottom)


def test_parallel_coordinates_are_bounded() -> None:
    runs = [run(n, {"loss": float(n)}, **{f"p{k}": str(n % (k + 2)) for k in range(20)}) for n in range(1, 1001)]
    order = ranking.ranking(runs)
    assert order
    found = parallel(runs, ranking.varying_parameters(runs), order)
    assert found
    assert (len(found.lines), found.total, len(found.axes)) == (MOST_LINES, 1000, 8)
    assert parallel(runs[:1], ["p0"], order) is None
    assert parallel(runs, [], order) is None
