"""Random valid jobs, for property tests."""

from hypothesis import strategies as st
from tests.domain.placements import PLACEMENT, RUNTIME_SETTINGS

from hekla.domain.jobspec import JobSpec
from hekla.domain.policies import POLICY_ACTIONS

LABELS = st.from_regex(r"[a-z]([a-z0-9-]{0,6}[a-z0-9])?", fullmatch=True)
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)
LINES = st.lists(TEXTS, max_size=4).map("\n".join)
VARIABLES = st.from_regex(r"[A-Z_]{1,6}", fullmatch=True)
AMOUNTS = st.sampled_from(["1", "250m", "4Gi", "0.5"])
EVENTS = st.sampled_from(["PodFailed", "PodEvicted", "PodPending", "Unknown", "TaskCompleted", "TaskFailed"])
PATHS = st.sampled_from(["train.py", "conf/model.yaml", "a b.txt", "data.csv", "conf/deep/x", "ü.txt"])


def _unique_keys(policies):
    """At most one policy by events and one by exit code, so that none conflict."""
    return list({"exit_code" in policy: policy for policy in policies}.values())


POLICY = st.builds(
    lambda cause, action, delay: {
        **cause,
        "action": str(action),
        **(delay if "Unknown" not in cause.get("events", ()) else {}),
    },
    st.one_of(
        st.fixed_dictionaries({"events": st.lists(EVENTS, min_size=1, max_size=3, unique=True)}),
        st.fixed_dictionaries({"exit_code": st.integers(1, 255)}),
    ),
    st.sampled_from(POLICY_ACTIONS),
    st.fixed_dictionaries({}, optional={"timeout_seconds": st.integers(1, 100_000)}),
)
POLICIES = st.lists(POLICY, max_size=3).map(_unique_keys)
SOURCES = {
    "data": {"volume_claim_name": "data-sets.all"},
    "files": {"volume_claim": {"storage": "10Gi", "access_modes": ["ReadWriteMany"], "storage_class": "nfs"}},
    "cache": {"volume_claim": {"storage": "512Mi"}},
    "shm": {"empty_dir": {"medium": "Memory", "size_limit": "1Gi"}},
    "scratch": {"empty_dir": {}},
}
MOUNT = st.fixed_dictionaries(
    {
        "name": st.sampled_from(list(SOURCES)),
        "mount_path": st.sampled_from(["/data", "/dev/shm", "/work/out", "/workspace", "/mnt/a b"]),
    },
    optional={"sub_path": st.sampled_from(["", "deep/er"]), "read_only": st.booleans()},
)
TOPOLOGY = st.one_of(
    st.just({"mode": "soft"}),
    st.fixed_dictionaries({"mode": st.just("hard")}, optional={"highest_tier_allowed": st.integers(0, 3)}),
    st.fixed_dictionaries({"highest_tier_name": st.sampled_from(["rack", "example.com/hall"])}),
)
POD_ANNOTATIONS = st.fixed_dictionaries(
    {},
    optional={
        "volcano.sh/preemptable": st.sampled_from(["true", "false"]),
        "volcano.sh/task-priority": st.integers(-9, 9).map(str),
    },
)
TASK = st.integers(1, 5).flatmap(
    lambda replicas: st.fixed_dictionaries(
        {"replicas": st.just(replicas), "command": st.lists(TEXTS, max_size=3).map(lambda words: ["run", *words])},
        optional={
            "min_available": st.integers(0, replicas),
            "resources": st.dictionaries(st.sampled_from(["cpu", "memory", "nvidia.com/gpu"]), AMOUNTS),
            "env": st.dictionaries(VARIABLES, LINES, max_size=3),
            "environment": LABELS,
            "image": st.sampled_from(["", "python:3.12"]),
            "working_dir": st.sampled_from(["", "src", "src/deep", "/data"]),
            "policies": POLICIES,
            "success_policy": st.sampled_from(["AllReplicas", "FirstReplica"]),
            "max_retry": st.sampled_from([-1, 1, 7]),
            "node_selector": st.dictionaries(st.sampled_from(["gpu", "hekla.io/zone"]), TEXTS),
            **PLACEMENT,
            **RUNTIME_SETTINGS,
            "annotations": POD_ANNOTATIONS,
            "autoscaling": st.fixed_dictionaries(
                {"max_replicas": st.integers(replicas, 9), "gpu_utilization": st.integers(1, 100)},
                optional={"stabilization_seconds": st.integers(0, 3600)},
            ),
            "grace_seconds": st.integers(0, 600),
            "partition_size": st.sampled_from([1, replicas]),
            "partition_topology": TOPOLOGY,
            "topology_policy": st.sampled_from(["none", "best-effort", "restricted", "single-numa-node"]),
            "ports": st.dictionaries(st.sampled_from(["board", "metrics", "p-8"]), st.integers(1, 65_535), max_size=2),
            "volume_mounts": st.lists(MOUNT, max_size=3, unique_by=lambda mount: mount["mount_path"]),
        },
    )
)


def _without_contradictions(task):
    """The task without a topology of partitions, if it has no partitions; with a size that nodes can pin, and
    with cards if they scale it.
    """
    if task.get("topology_policy", "none") != "none":
        task = {**task, "resources": {**task.get("resources", {}), "cpu": "2", "memory": "1Gi"}}
    if "autoscaling" in task:
        without = ("partition_size", "partition_topology", "min_partitions")
        task = {name: value for name, value in task.items() if name not in without}
        task["resources"] = {**task.get("resources", {}), "nvidia.com/gpu": "1"}
    return task if "partition_size" in task else {name: task[name] for name in task if name != "partition_topology"}


def _with_names_and_dependencies(tasks):
    """Tasks with their names. A task with dependencies depends on all earlier ones."""
    tasks = [(name, _without_contradictions(task), waits) for name, task, waits in tasks]
    return [
        {"name": name, **task, **({"depends_on": _depends_on(tasks[:position], waits)} if waits and position else {})}
        for position, (name, task, waits) in enumerate(tasks)
    ]


def with_own_ports(tasks):
    """The tasks, without ports whose names an earlier task uses."""
    used_names = set()
    for task in tasks:
        ports = {name: port for name, port in task.get("ports", {}).items() if name not in used_names}
        used_names |= set(ports)
        yield {**task, "ports": ports}


def with_volumes(document):
    """The document with exactly the volumes that its tasks mount."""
    used = {mount["name"] for task in document["tasks"] for mount in task.get("volume_mounts", ())}
    volumes = [{"name": name, **SOURCES[name]} for name in SOURCES if name in used]
    return document | ({"volumes": volumes} if volumes else {})


def _depends_on(earlier, iteration):
    return {"tasks": [name for name, _, _ in earlier], "iteration": iteration}


WAITS = st.sampled_from([None, "all", "any"])
DOCUMENTS = st.fixed_dictionaries(
    {
        "name": LABELS,
        "tasks": st.lists(st.tuples(LABELS, TASK, WAITS), min_size=1, max_size=3, unique_by=lambda pair: pair[0]),
    },
    optional={
        "description": LINES,
        "kind": st.sampled_from(["training", "debugging", "conversion"]),
        "queue": LABELS,
        "priority": st.integers(-1000, 1000),
        "priority_class": st.sampled_from(["", "high", "low-1"]),
        "min_available": st.just(1),
        "min_success": st.just(1),
        "network_topology": TOPOLOGY,
        "min_resources": st.dictionaries(st.sampled_from(["cpu", "memory"]), AMOUNTS),
        "max_retry": st.integers(1, 9),
        "active_deadline_seconds": st.integers(1, 100_000),
        "ttl_seconds_after_finished": st.integers(0, 100_000),
        "keep_failed_seconds": st.integers(60, 604_800),
        "idle_after_seconds": st.integers(600, 43_200),
        "policies": POLICIES,
        "plugins": st.sampled_from([{}, {"env": []}, {"env": [], "svc": ["--inject-hosts-env=false"]}]),
        "files": st.dictionaries(PATHS, LINES, max_size=3),
    },
).map(
    lambda fields: with_volumes(
        {**fields, "tasks": list(with_own_ports(_with_names_and_dependencies(fields["tasks"])))}
    )
)
SPECS = DOCUMENTS.map(JobSpec.parse)
