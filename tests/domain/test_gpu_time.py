"""GPU time is divided into classes that add up to the capacity, whatever pods hold."""

from collections import Counter
from random import Random

import pytest

from hekla.domain.gpu_time import (
    MINUTE_MS,
    CapacitySpan,
    GpuClass,
    NodeState,
    PodHolding,
    changed_since,
    divide,
    divide_minutes,
)

SECOND = 1000


def amounts(spans: list[CapacitySpan], holdings: list[PodHolding], minute: int = 0) -> dict[str, int]:
    """The GPU seconds of each class in this minute."""
    found: dict[str, int] = {}
    begin = minute * MINUTE_MS
    for share in divide(spans, holdings, begin, begin + MINUTE_MS, minute=minute):
        name = share.what.value if share.what else "beyond"
        found[name] = found.get(name, 0) + share.gpu_us // 1_000_000
    return found


def capacity(gpus: int, state: NodeState = NodeState.OPEN, begin: int = 0, end: int = MINUTE_MS * 60) -> CapacitySpan:
    return CapacitySpan(begin, end, gpus * 1000, state, "A100")


def holding(gpus: int, bound: int = 0, ready: int | None = 0, end: int = 2**60, **more: object) -> PodHolding:
    ready_ms = None if ready is None else ready * SECOND
    return PodHolding(1, gpus * 1000, bound * SECOND, ready_ms, end, **more)


USED = {"measured": 1}
CASES = [
    ([capacity(8)], [], {"free": 480}),
    ([capacity(8, NodeState.DRAINED)], [], {"drained": 480}),
    ([capacity(8, NodeState.DOWN)], [holding(2, **USED)], {"useful": 120, "down": 360}),
    ([capacity(8)], [holding(2)], {"unmeasured": 120, "free": 360}),
    ([capacity(8)], [holding(2, measured=1, idle=1)], {"idle": 120, "free": 360}),
    ([capacity(8)], [holding(2, bound=10, ready=20, **USED)], {"gang": 20, "useful": 80, "free": 380}),
    ([capacity(8)], [holding(2, ready=None, end=30 * SECOND)], {"gang": 60, "free": 420}),
    ([capacity(8)], [holding(8, ready=30, outcome=GpuClass.FAILED)], {"gang": 240, "failed": 240}),
    ([capacity(2)], [holding(3, **USED)], {"useful": 120, "beyond": 60}),
    ([], [holding(1, **USED)], {"beyond": 60}),
    ([capacity(4, end=15 * SECOND), capacity(2, begin=15 * SECOND)], [], {"free": 60 + 90}),
]


@pytest.mark.parametrize(("spans", "holdings", "want"), CASES)
def test_classes_of_one_minute(spans: list[CapacitySpan], holdings: list[PodHolding], want: dict[str, int]) -> None:
    assert amounts(spans, holdings) == want


def test_classes_add_up_to_the_capacity() -> None:
    """Also if pods hold more than there is, and if everything changes within the minute."""
    random = Random(1)
    for _ in range(300):
        cuts = sorted(random.sample(range(1, MINUTE_MS), 2))
        sizes = [random.randint(0, 9_000) for _ in range(3)]
        spans = [
            CapacitySpan(begin, end, size, random.choice(list(NodeState)), "A100")
            for begin, end, size in zip([0, *cuts], [*cuts, MINUTE_MS], sizes, strict=True)
        ]
        holdings = [_random_holding(random, key) for key in range(random.randint(0, 6))]
        shares = list(divide(spans, holdings, 0, MINUTE_MS, minute=0))
        whole = sum(span.gpus * (span.end - span.begin) for span in spans)
        assert sum(share.gpu_us for share in shares if share.what) == whole
        for one in holdings:
            time = max(0, min(one.end, MINUTE_MS) - max(one.bound, 0))
            assert sum(share.gpu_us for share in shares if share.holder == one.key) == one.gpus * time


def test_minutes_are_divided_together_as_each_alone() -> None:
    """With room for all pods or not, and whatever changes within the minutes."""
    random, hour, end = Random(2), 7 * 60 * MINUTE_MS, (7 * 60 + 5) * MINUTE_MS
    for _ in range(300):
        cuts = sorted(random.sample(range(hour + 1, end), random.randint(0, 2)))
        spans = [
            CapacitySpan(since, until, random.choice([1000, 9000]), random.choice(list(NodeState)), f"model-{since}")
            for since, until in zip([hour, *cuts], [*cuts, end], strict=True)
        ]
        holdings = [_random_holding(random, key, hour) for key in range(random.randint(0, 5))]
        want: Counter[object] = Counter()
        for since in range(hour, end, MINUTE_MS):
            for share in divide(spans, holdings, since, since + MINUTE_MS, minute=(since - hour) // MINUTE_MS):
                want[since, share.model, share.holder, share.what] += share.gpu_us
        found: Counter[object] = Counter()
        for share in divide_minutes(spans, holdings, hour, end, hour=hour):
            at = share.since
            while at < share.until:
                minute = at - at % MINUTE_MS
                until = min(share.until, minute + MINUTE_MS)
                found[minute, share.model, share.holder, share.what] += share.gpus * (until - at)
                at = until
        assert found == want


def _random_holding(random: Random, key: int, begin: int = 0) -> PodHolding:
    bound = begin + random.randint(-1000, MINUTE_MS)
    ready = random.choice([None, bound + random.randint(0, MINUTE_MS)])
    outcome = random.choice([None, None, GpuClass.FAILED, GpuClass.PREEMPTED])
    bits = {"measured": random.getrandbits(4), "idle": random.getrandbits(4)}
    end = bound + random.choice([random.randint(0, 90_000), 5 * MINUTE_MS])
    return PodHolding(key, random.randint(0, 4000), bound, ready, end, outcome, **bits)


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        (None, holding(1, bound=5), 5),
        (holding(1), holding(1), None),
        (holding(1), holding(2), 0),
        (holding(1, ready=None), holding(1, ready=9), 9),
        (holding(1, ready=9), holding(1, ready=4), 4),
        (holding(1), holding(1, end=7 * SECOND), 7),
        (holding(1, ready=3), holding(1, ready=3, end=7 * SECOND, outcome=GpuClass.FAILED), 3),
        (holding(1, ready=None), holding(1, ready=None, end=7 * SECOND, outcome=GpuClass.FAILED), 7),
    ],
)
def test_only_the_time_that_differs_is_stale(old: PodHolding | None, new: PodHolding, want: int | None) -> None:
    assert changed_since(old, new) == (None if want is None else want * SECOND)
