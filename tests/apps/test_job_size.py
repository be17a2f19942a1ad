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


@pytest.mark.parametrize(("kind", "is_refused"), [(Cluster.Kind.LOCAL, True), (Cluster.Kind.KUBERNETES, False)])
@pytest.mark.parametrize("more", [{}, {"volcano.sh/gpu-memory": "1000"}], ids=["whole GPUs", "and a part of one"])
def test_this_machine_gives_no_whole_gpu_that_jobs_share(kind: str, is_refused: bool, more: dict[str, str]) -> None:
    node = NODE + Resources.parse({"volcano.sh/gpu-number": "2", "volcano.sh/gpu-memory": "160000"})
    queue = Queue(name="team", cluster=Cluster(name="here", kind=kind))
    task = {"name": "main", "command": ["true"], "resources": {"cpu": "1", "volcano.sh/gpu-number": "1", **more}}
    spec = JobSpec.parse({"name": "whole", "queue": "team", "tasks": [task]})
    found = [(problem.path, problem.message) for problem in too_large(spec, queue, [node])]
    sentence = (
        "Jobs share the GPUs of cluster here, so they request memory of one. A whole one is volcano.sh/gpu-memory: "
        "80000."
    )
    assert found == ([("tasks.0.resources.volcano.sh/gpu-number", sentence)] if is_refused else [])
