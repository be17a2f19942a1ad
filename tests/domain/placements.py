"""Random valid settings of where and how the pods of tasks run, for property tests."""

from hypothesis import strategies as st

KEYS = st.sampled_from(["zone", "app", "example.com/tier", "gpu.io/model"])
VALUES = st.sampled_from(["a", "b-1", "10", "A.b_c"])
WEIGHTS = st.integers(1, 100)


def _requirement(operators):
    """Requirements with any of these operators, each with values that it takes."""
    values = {
        "In": st.lists(VALUES, min_size=1, max_size=3),
        "NotIn": st.lists(VALUES, min_size=1, max_size=3),
        "Gt": st.just(["8"]),
        "Lt": st.just(["16"]),
    }
    return st.sampled_from(operators).flatmap(
        lambda operator: st.fixed_dictionaries(
            {"key": KEYS, "operator": st.just(operator)} | ({"values": values[operator]} if operator in values else {})
        )
    )


LABEL_OPERATORS = ["In", "NotIn", "Exists", "DoesNotExist"]
LABELS = st.dictionaries(KEYS, VALUES, max_size=2)
EFFECTS = st.sampled_from(["NoSchedule", "PreferNoSchedule", "NoExecute"])
TOLERATION = st.one_of(
    st.fixed_dictionaries({"key": KEYS}, optional={"value": VALUES, "effect": EFFECTS}),
    st.fixed_dictionaries({"operator": st.just("Exists")}, optional={"key": KEYS, "effect": EFFECTS}),
    st.fixed_dictionaries(
        {"key": KEYS, "effect": st.just("NoExecute"), "toleration_seconds": st.integers(0, 600)},
    ),
)
NODE_FIELD = st.fixed_dictionaries(
    {"key": st.just("metadata.name"), "operator": st.sampled_from(["In", "NotIn"]), "values": st.just(["node-1.lan"])}
)
NODE_TERM = st.fixed_dictionaries(
    {},
    optional={
        "match_expressions": st.lists(_requirement([*LABEL_OPERATORS, "Gt", "Lt"]), min_size=1, max_size=2),
        "match_fields": st.lists(NODE_FIELD, min_size=1, max_size=1),
    },
)
SELECTOR = st.fixed_dictionaries(
    {},
    optional={
        "match_labels": LABELS,
        "match_expressions": st.lists(_requirement(LABEL_OPERATORS), min_size=1, max_size=2),
    },
)
POD_TERM = st.fixed_dictionaries({"topology_key": KEYS}, optional={"label_selector": SELECTOR}) | st.just(
    {"topology_key": "zone", "label_selector": {"match_labels": {"a": "b"}}, "mismatch_label_keys": ["app"]}
)
_REQUIRED, _PREFERRED = (f"{word}_during_scheduling_ignored_during_execution" for word in ("required", "preferred"))
POD_AFFINITY = st.fixed_dictionaries(
    {},
    optional={
        _REQUIRED: st.lists(POD_TERM, min_size=1, max_size=2),
        _PREFERRED: st.lists(
            st.fixed_dictionaries({"weight": WEIGHTS, "pod_affinity_term": POD_TERM}), min_size=1, max_size=2
        ),
    },
)
NODE_AFFINITY = st.fixed_dictionaries(
    {},
    optional={
        _REQUIRED: st.fixed_dictionaries({"node_selector_terms": st.lists(NODE_TERM, min_size=1, max_size=2)}),
        _PREFERRED: st.lists(
            st.fixed_dictionaries({"weight": WEIGHTS, "preference": NODE_TERM}), min_size=1, max_size=2
        ),
    },
)
AFFINITY = st.fixed_dictionaries(
    {},
    optional={"node_affinity": NODE_AFFINITY, "pod_affinity": POD_AFFINITY, "pod_anti_affinity": POD_AFFINITY},
)
SPREAD = st.lists(
    st.fixed_dictionaries(
        {
            "max_skew": st.integers(1, 3),
            "topology_key": KEYS,
            "when_unsatisfiable": st.sampled_from(["DoNotSchedule", "ScheduleAnyway"]),
        },
        optional={
            "label_selector": SELECTOR,
            "node_affinity_policy": st.sampled_from(["Honor", "Ignore"]),
            "node_taints_policy": st.sampled_from(["Honor", "Ignore"]),
        },
    ),
    max_size=2,
    unique_by=lambda constraint: (constraint["topology_key"], constraint["when_unsatisfiable"]),
)
PLACEMENT = {
    "labels": LABELS,
    "tolerations": st.lists(TOLERATION, max_size=3),
    "affinity": AFFINITY,
    "topology_spread_constraints": SPREAD,
}
"""Strategies of the fields of a task."""
ADDRESSES = st.sampled_from(["", "10.0.0.1", "fd00::1"])
HOST_PORT = st.fixed_dictionaries(
    {"host_port": st.integers(1, 65_535), "container_port": st.integers(1, 65_535)},
    optional={"protocol": st.sampled_from(["TCP", "UDP", "SCTP"]), "host_ip": ADDRESSES},
)
CLAIM_NAMES, OF_CLAIM = st.sampled_from(["gpu", "nic"]), {"requests": st.just(["card"])}
CLAIM = st.one_of(
    st.fixed_dictionaries({"name": CLAIM_NAMES, "resource_claim_name": st.just("my.claim")}, optional=OF_CLAIM),
    st.fixed_dictionaries({"name": CLAIM_NAMES, "resource_claim_template_name": st.just("one")}, optional=OF_CLAIM),
)
IDS = st.integers(1, 2**31 - 1)
RUNTIME_SETTINGS = {
    "host_ports": st.lists(HOST_PORT, max_size=3, unique_by=lambda port: port["host_port"]),
    "pull_secrets": st.lists(st.sampled_from(["registry", "team.registry", "x-1"]), max_size=3, unique=True),
    "resource_claims": st.lists(CLAIM, max_size=2, unique_by=lambda claim: claim["name"]),
    "runtime_class": st.sampled_from(["", "kata", "nvidia.cdi"]),
    "security_context": st.fixed_dictionaries(
        {},
        optional={
            "run_as_user": IDS,
            "run_as_group": st.integers(0, 9),
            "run_as_non_root": st.booleans(),
            "fs_group": st.integers(0, 9),
            "supplemental_groups": st.lists(IDS, max_size=2),
            "read_only_root_filesystem": st.booleans(),
        },
    ),
}
"""Strategies of the fields of a task."""
