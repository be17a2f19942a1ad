"""Waiting times in buckets, sizes and causes of failures."""

from random import Random

import pytest

from hekla.domain.job_measures import (
    LAST_BUCKET,
    QUANTILES,
    FailureCause,
    JobSize,
    bucket_of,
    cause_of_pod,
    limit_of,
    quantile,
    size_of,
)


def test_every_wait_is_in_its_bucket() -> None:
    assert [bucket_of(ms) for ms in (0, 1, 1000, 1001)] == [0, 0, 0, 1]
    assert bucket_of(10**15) == LAST_BUCKET
    for ms in (1500, 60_000, 3_600_000, 86_400_000):
        bucket = bucket_of(ms)
        assert limit_of(bucket - 1) < ms / 1000 <= limit_of(bucket) < 1.19 * ms / 1000


def test_quantiles_of_sums_are_close_to_the_true_ones() -> None:
    random = Random(3)
    waits = sorted(int(1000 * random.lognormvariate(5, 2)) for _ in range(5000))
    buckets: dict[int, int] = {}
    for wait in waits:
        buckets[bucket_of(wait)] = buckets.get(bucket_of(wait), 0) + 1
    for part in QUANTILES:
        found = quantile(buckets, part)
        assert found == pytest.approx(waits[int(part * len(waits)) - 1] / 1000, rel=0.1)
    assert quantile({}, 0.5) is None
    assert quantile({0: 3}, 1.0) == 1.0


def test_sizes() -> None:
    assert [size_of(gpus) for gpus in (0, 0.5, 1, 2, 8, 9, 64, 65)] == [
        *(JobSize.NONE, JobSize.ONE, JobSize.ONE, JobSize.NODE_PART),
        *(JobSize.NODE, JobSize.NODES, JobSize.MANY, JobSize.MOST),
    ]


@pytest.mark.parametrize(
    ("reason", "code", "is_lost", "want"),
    [
        ("OOMKilled", 137, False, FailureCause.MEMORY),
        ("Error", 1, False, FailureCause.EXIT_CODE),
        ("", None, False, FailureCause.START),
        ("", None, True, FailureCause.NODE),
        ("NodeLost", None, True, FailureCause.NODE),
        ("ImagePullBackOff", None, False, FailureCause.IMAGE),
        ("Evicted", None, False, FailureCause.PRESSURE),
        ("DeadlineExceeded", None, False, FailureCause.TIMEOUT),
    ],
)
def test_causes(reason: str, code: int | None, is_lost: bool, want: FailureCause) -> None:
    assert cause_of_pod(reason, code, is_lost=is_lost) is want
