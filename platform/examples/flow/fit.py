"""Fits a line to noisy numbers, in three steps; STEP says which.

Every step can do again what was done before it.
"""

import os
import random
from statistics import fmean, linear_regression

SLOPE, INTERCEPT, NOISE, COUNT = 2.0, 1.0, 0.1, 400


def prepare(seed: int) -> list[tuple[float, float]]:
    """Points near a line."""
    dice = random.Random(seed)  # noqa: S311  (no secret)
    places = [dice.uniform(-1, 1) for _ in range(COUNT)]
    return [(x, SLOPE * x + INTERCEPT + dice.gauss(0, NOISE)) for x in places]


def train(points: list[tuple[float, float]]) -> tuple[float, float]:
    """The line of the least squares: slope and intercept."""
    slope, intercept = linear_regression(*zip(*points, strict=True))
    return slope, intercept


def evaluate(line: tuple[float, float], points: list[tuple[float, float]]) -> float:
    """The mean square of what the line gets wrong."""
    slope, intercept = line
    return fmean((slope * x + intercept - y) ** 2 for x, y in points)


def main() -> None:
    """Do one step and say what came out."""
    step, points = os.environ.get("STEP", "evaluate"), prepare(seed=1)
    if step == "prepare":
        print(f"{len(points)} points, the first at ({points[0][0]:.3f}, {points[0][1]:.3f})")
    elif step == "train":
        print("slope {:.3f}, intercept {:.3f}".format(*train(points)))
    else:
        error = evaluate(train(points), prepare(seed=2))
        print(f"mean square error on new points: {error:.4f}")
        if error > 2 * NOISE**2:
            raise SystemExit("The line does not fit.")


if __name__ == "__main__":
    main()
