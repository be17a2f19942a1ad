"""Jobs that can never start: larger than every node, than the cluster, or than the limit of their queue."""

import pytest

from hekla.apps.clusters.models import Cluster
from hekla.apps.jobs.services.submission import too_large
from hekla.apps.queues.models import Queue
from hekla.domain.jobspec import JobSpec
from hekla.domain.resources import Resources

NODE = Resources.parse({"cpu": "4", "memory": "8Gi"})
LIMIT = "The capacity of {} is {}, so the job can never start."


@pytest.mark.parametrize(
    ("queue", "replicas", "request_", "expected"),
    [
        ("team-gpu", 1, {"cpu": "1", "memory": "1Gi"}, []),
        ("team-gpu", 3, {"cpu": "1", "memory": "1Gi"}, [LIMIT.format("queue team-gpu", 2)]),
        ("team-gpu", 3, {"cpu": "500m", "memory": "4Gi"}, [LIMIT.format("cluster gpu", "8Gi")]),
        ("team", 5, {"cpu": "1"}, [LIMIT.format("cluster gpu", 4), LIMIT.format("queue team", 2)]),
    ],
    ids=["within", "exceeds the queue's limit", "exceeds the cluster", "exceeds both"],
)
def test_queue_limit_applies_to_the_limited_resources_only(
    queue: str, replicas: int, request_: dict[str, str], expected: list[str]
) -> None:
    limited = Queue(name=queue, cluster=Cluster(name="gpu"), capability={"cpu": "2"})
    task = {"name": "main", "command": ["true"], "replicas": replicas, "resources": request_}
    spec = JobSpec.parse({"name": "big", "queue": queue, "tasks": [task]})
    found = [problem.message for problem in too_large(spec, limited, [NODE])]
    assert [sentence[sentence.index("The capacity") :] for sentence in found] == expected
