"""Random valid JobConfigs, for property tests."""

import json

from hypothesis import strategies as st

from hekla.domain import formats

NAMES = st.from_regex(r"[A-Za-z0-9_-]{1,12}", fullmatch=True).filter(lambda name: any(c.isalnum() for c in name))
ROLES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)
WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="<>%"), min_size=1, max_size=20)
COMMANDS = WORDS.map(lambda word: f"echo {word}")
COUNTS = st.integers(1, 5)
IMAGES = st.sampled_from(["python:3.12", "registry.lab:5000/team/torch"])


def _roles(role):
    return st.dictionaries(ROLES, role, min_size=1, max_size=3)


def _completion(replicas):
    return st.fixed_dictionaries(
        {},
        optional={
            "minFailedInstances": st.sampled_from([None, -1, 1, 2]),
            "minSucceededInstances": st.sampled_from([None, -1, 1, replicas]),
        },
    )


ROLE_2 = COUNTS.flatmap(
    lambda replicas: st.fixed_dictionaries(
        {
            "instances": st.just(replicas),
            "completion": _completion(replicas),
            "dockerImage": st.just("image"),
            "resourcePerInstance": st.fixed_dictionaries(
                {"cpu": st.integers(0, 8), "memoryMB": st.integers(0, 4096), "gpu": st.integers(0, 2)},
                optional={"ports": st.dictionaries(ROLES, st.integers(1, 3), min_size=1, max_size=2)},
            ),
            "commands": st.lists(COMMANDS, min_size=1, max_size=3),
        },
        optional={
            "taskRetryCount": st.integers(0, 3),
            "extraContainerOptions": st.fixed_dictionaries({"shmMB": st.integers(0, 1024)}),
        },
    )
)
VERSION_2 = st.fixed_dictionaries(
    {
        "protocolVersion": st.sampled_from([2, "2"]),
        "name": NAMES,
        "type": st.just("job"),
        "prerequisites": IMAGES.map(lambda uri: [{"type": "dockerimage", "name": "image", "uri": uri}]),
        "taskRoles": _roles(ROLE_2),
    },
    optional={
        "description": WORDS,
        "jobRetryCount": st.integers(0, 5),
        "defaults": st.fixed_dictionaries({"virtualCluster": NAMES}),
        "extras": st.fixed_dictionaries(
            {},
            optional={
                "gangAllocation": st.booleans(),
                "submitFrom": WORDS,
                "hivedScheduler": st.sampled_from(["crit", "prod", "test", "oppo"]).map(
                    lambda name: {"jobPriorityClass": name}
                ),
            },
        ),
    },
)
ROLE_1 = COUNTS.flatmap(
    lambda replicas: st.fixed_dictionaries(
        {"taskNumber": st.just(replicas), "command": COMMANDS},
        optional={
            "cpuNumber": st.integers(1, 8),
            "memoryMB": st.integers(1, 4096),
            "gpuNumber": st.integers(0, 2),
            "shmMB": st.integers(0, 1024),
            "minFailedTaskCount": st.sampled_from([None, 1, 2]),
            "minSucceededTaskCount": st.sampled_from([None, 1, replicas]),
            "portList": ROLES.map(lambda label: [{"label": label, "beginAt": 0, "portNumber": 2}]),
        },
    )
)
VERSION_1 = st.fixed_dictionaries(
    {
        "jobName": NAMES,
        "image": IMAGES,
        "taskRoles": _roles(ROLE_1).map(lambda roles: [{"name": name, **role} for name, role in roles.items()]),
    },
    optional={"retryCount": st.integers(0, 5), "virtualCluster": NAMES},
)


def spec_of(document):
    """The job of a JobConfig."""
    return formats.load(json.dumps(document, ensure_ascii=False)).spec
