"""The rendered chart: the processes of `manage.py up`, with existing settings and few permissions."""

import os
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.db import connection
from tests.deploy.chart import (
    CHART,
    DASHBOARD,
    MINIMAL,
    OF_FILES,
    RULES,
    Object,
    Refused,
    environment,
    full_values,
    lint,
    object_named,
    of_kind,
    pods,
    render,
)
from tests.support.processes import PROCESSES, commands_of_up

import hekla
from hekla.lib.checkout import CHECKOUT
from hekla.project.config import Config

_KNOWN = {field.validation_alias or f"HEKLA_{name.upper()}" for name, field in Config.model_fields.items()}
_VARIABLES_OF_OTHERS = {"PGOPTIONS", "POD_IP"}
"""For libpq, and for the value of HEKLA_ALLOWED_HOSTS."""
_NOT_IN_THE_CHART = {"HEKLA_HOME", "HEKLA_DEBUG", "HEKLA_CHECK_ENGINE", "NOTIFY_SOCKET"}
"""Set by the image or by systemd, or for developers."""
BOTH_VALUES = pytest.mark.parametrize("values", [MINIMAL, full_values()], ids=["minimal", "full"])


def minimal_with(**values: Any) -> Object:
    """The minimal values and these; `a__b` sets `b` within `a`."""
    made: Object = {**MINIMAL}
    for name, value in values.items():
        inside, _, last = name.rpartition("__")
        made[inside or last] = {**made.get(inside, {}), last: value} if inside else value
    return made


def containers(objects: list[Object]) -> Iterator[Object]:
    for pod in pods(objects).values():
        yield from pod["spec"]["containers"]
        yield from pod["spec"].get("initContainers", [])


@BOTH_VALUES
def test_helm_lint_passes(helm: Path, values: Object) -> None:
    assert "1 chart(s) linted, 0 chart(s) failed" in lint(helm, values)


@pytest.mark.parametrize("name", PROCESSES)
def test_each_process_has_the_command_of_up(helm: Path, name: str) -> None:
    (container,) = pods(render(helm, MINIMAL))[name]["spec"]["containers"]
    python, module, *argv = container["command"]
    assert (python, module) == ("python", "-m")
    assert ["127.0.0.1" if word == "0.0.0.0" else word for word in argv] == commands_of_up()[name]


@BOTH_VALUES
def test_every_environment_variable_is_a_setting(helm: Path, values: Object) -> None:
    made = pods(render(helm, values))
    assert {name for pod in made.values() for name in environment(pod)} - _VARIABLES_OF_OTHERS <= _KNOWN


def test_chart_can_set_every_setting(helm: Path) -> None:
    made = pods(render(helm, full_values()))
    assert {name for pod in made.values() for name in environment(pod)} >= _KNOWN - _NOT_IN_THE_CHART


def test_values_are_settings_of_every_process(helm: Path) -> None:
    for pod in pods(render(helm, full_values())).values():
        settings = {name: variable.get("value") for name, variable in environment(pod).items()}
        assert settings["HEKLA_PUBLIC_URL"] == "https://hekla.example.org"
        assert settings["HEKLA_ALLOWED_HOSTS"] == "hekla.example.org,localhost,hekla.example.net,$(POD_IP)"
        assert settings["HEKLA_TRUSTED_PROXIES"] == "10.244.0.0/16,fd00:10:244::/56"
        assert settings["HEKLA_EXTENDERS"] == "http://extender.ml.svc:8888/v1,https://other.example.org"
        assert settings["HEKLA_SECOND_FACTOR_FOR"] == "admins"
        assert settings["HEKLA_TRIES_A_MINUTE"] == "30"
        assert settings["HEKLA_RESTART_BACKOFF"] == "2.5"
        assert settings["HEKLA_KEEP_FAILED_GIB"] == "50"
        assert settings["HEKLA_WORKBENCH_DOMAIN"] == "tools.example.com"
        assert settings["HEKLA_WORKBENCH_HOST"] == ""
        assert settings["HEKLA_HSTS_SECONDS"] == "86400"


@BOTH_VALUES
def test_secrets_come_only_from_the_existing_secret(helm: Path, values: Object) -> None:
    objects = render(helm, values)
    assert not of_kind(objects, "Secret")
    for pod in pods(objects).values():
        for name in ("HEKLA_SECRET_KEY", "DATABASE_URL", "VALKEY_URL"):
            assert environment(pod)[name]["valueFrom"] == {"secretKeyRef": {"name": "hekla", "key": name}}


@BOTH_VALUES
def test_containers_are_restricted(helm: Path, values: Object) -> None:
    objects = render(helm, values)
    for container in containers(objects):
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"]["requests"]
    for pod in pods(objects).values():
        assert pod["spec"]["securityContext"]["runAsNonRoot"] is True
        assert pod["spec"]["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}


def test_only_web_and_control_have_a_token_and_the_volume(helm: Path) -> None:
    made = {name: pod["spec"] for name, pod in pods(render(helm, MINIMAL)).items()}
    trusted = {"web", "control"}
    assert {name for name, spec in made.items() if spec["automountServiceAccountToken"]} == trusted
    shared = {name: [one for one in spec["volumes"] if "persistentVolumeClaim" in one] for name, spec in made.items()}
    assert {name for name, volumes in shared.items() if volumes} == trusted


def test_user_and_home_equal_those_of_the_image(helm: Path) -> None:
    text = (CHECKOUT / "deploy" / "compose" / "Dockerfile").read_text()
    user, group = re.findall(r"^USER (\d+):(\d+)$", text, re.MULTILINE)[0]
    (home,) = re.findall(r"HEKLA_HOME=(\S+)", text)
    for pod in pods(render(helm, MINIMAL)).values():
        context = pod["spec"]["securityContext"]
        assert (context["runAsUser"], context["runAsGroup"]) == (int(user), int(group))
        assert home in [mount["mountPath"] for mount in pod["spec"]["containers"][0]["volumeMounts"]]


def test_beat_is_a_single_replica_and_recreated(helm: Path) -> None:
    spec = object_named(render(helm, full_values()), "Deployment", "hekla-beat")["spec"]
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})


def test_other_processes_are_updated_without_a_gap(helm: Path) -> None:
    for name in ("web", "control", "default"):
        strategy = object_named(render(helm, MINIMAL), "Deployment", f"hekla-{name}")["spec"]["strategy"]
        assert strategy == {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}


def test_web_probes_use_an_allowed_host(helm: Path) -> None:
    web = pods(render(helm, MINIMAL))["web"]
    (container,) = web["spec"]["containers"]
    probes = {name: container[f"{name}Probe"]["httpGet"] for name in ("startup", "liveness", "readiness")}
    assert {name: get["path"] for name, get in probes.items()} == {
        "startup": "/livez",
        "liveness": "/livez",
        "readiness": "/readyz",
    }
    hosts = environment(web)["HEKLA_ALLOWED_HOSTS"]["value"].split(",")
    assert all(get["httpHeaders"] == [{"name": "Host", "value": "localhost"}] for get in probes.values())
    assert hosts == ["hekla.example.org", "localhost"]


def test_control_that_hangs_is_replaced_by_its_liveness_probe(helm: Path, tmp_path: Path) -> None:
    pod = pods(render(helm, MINIMAL))["control"]
    (container,) = pod["spec"]["containers"]
    beat = tmp_path / "heartbeat"
    assert environment(pod)["HEKLA_HEARTBEAT"]["value"] == "/tmp/heartbeat"

    def succeeds(probe: str) -> bool:
        command = [word.replace("/tmp/heartbeat", str(beat)) for word in container[probe]["exec"]["command"]]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    assert not succeeds("startupProbe")
    beat.touch()
    assert succeeds("startupProbe")
    assert succeeds("livenessProbe")
    os.utime(beat, (0, time.time() - 200))
    assert not succeeds("livenessProbe")


def test_web_keeps_serving_while_proxies_remove_it(helm: Path) -> None:
    spec = pods(render(helm, MINIMAL))["web"]["spec"]
    pause = spec["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert 0 < pause < spec["terminationGracePeriodSeconds"]


def test_migrations_run_before_install_and_upgrade(helm: Path) -> None:
    (job,) = of_kind(render(helm, MINIMAL), "Job")
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"
    needed = yaml.safe_dump(job["spec"]["template"])
    assert "persistentVolumeClaim" not in needed  # the first install has no other objects yet
    assert "serviceAccountName" not in needed


@BOTH_VALUES
def test_processes_wait_for_migrations(helm: Path, values: Object) -> None:
    made = pods(render(helm, values))
    for name in PROCESSES:
        (wait,) = made[name]["spec"]["initContainers"]
        assert "python -m django migrate --check" in wait["command"][-1]


def test_migrations_use_the_command_of_compose(helm: Path) -> None:
    compose = yaml.safe_load((CHECKOUT / "deploy" / "compose" / "compose.yaml").read_text())
    (container,) = pods(render(helm, MINIMAL))["tables"]["spec"]["containers"]
    assert container["command"] == compose["services"]["tables"]["command"]


@pytest.mark.django_db
def test_migrations_have_a_lock_timeout(helm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = pods(render(helm, MINIMAL))
    monkeypatch.setenv("PGOPTIONS", environment(made["tables"])["PGOPTIONS"]["value"])
    beside = connection.copy()
    with beside.cursor() as cursor:
        cursor.execute("SHOW lock_timeout")
        assert cursor.fetchone() == ("10s",)
    beside.close()
    assert all("PGOPTIONS" not in environment(made[name]) for name in PROCESSES)


def test_without_hooks_each_version_has_its_own_migration_job(helm: Path) -> None:
    names = {
        the_job["metadata"]["name"]
        for tag in ("1", "2")
        for the_job in of_kind(render(helm, minimal_with(tables__hook=False, image__tag=tag)), "Job")
    }
    assert len(names) == 2


@pytest.mark.parametrize("change", [{"secretVersion": "2"}, {"settings__timeZone": "Asia/Shanghai"}])
def test_changed_settings_restart_every_process(helm: Path, change: Object) -> None:
    before, after = pods(render(helm, MINIMAL)), pods(render(helm, minimal_with(**change)))
    assert all(before[name] != after[name] for name in PROCESSES)


@pytest.mark.parametrize(
    ("more", "options"),
    [
        ((), {}),
        (("rights-tenants.yaml",), {"jobs__namespaceForEachTenant": True}),
        (("rights-volcano.yaml",), {"jobs__scheduledByVolcano": True}),
        (("rights-priorities.yaml",), {"jobs__priorityClasses": True}),
        (("rights-devices.yaml",), {"jobs__devices": True}),
        (("rights-storage.yaml",), {"jobs__storage": True}),
        (("rights-ports.yaml",), {"jobs__portsOutside": True}),
        (("rights-terminals.yaml",), {"jobs__terminals": True}),
    ],
)
def test_rbac_equals_the_files_for_clusters(helm: Path, more: tuple[str, ...], options: Object) -> None:
    texts = [(CHECKOUT / "deploy" / "kubernetes" / file).read_text() for file in ("rights.yaml", *more)]
    documents = [one for text in texts for one in yaml.safe_load_all(text)]
    expected = [one for one in documents if "rbac" in one["apiVersion"]]
    values = minimal_with(jobs__namespace="hekla", **options)
    made = render(helm, values, namespace="hekla")
    admission = [one["spec"] for one in documents if "admission" in one["apiVersion"]]
    found_admission = str([one["spec"] for one in made if "admission" in one["apiVersion"]])
    assert found_admission.replace("hekla-hekla-tenants", "hekla-tenants") == str(admission)
    for one in expected:
        (found,) = [other for other in of_kind(made, one["kind"]) if is_same_object(one, other)]
        assert str(found.get("rules")).replace("hekla:hekla-", "hekla-") == str(one.get("rules"))
        assert found.get("subjects") == one.get("subjects")
        assert found["metadata"].get("namespace") == one["metadata"].get("namespace")
    assert len(expected) == len([one for one in made if "rbac" in one["apiVersion"]])


@pytest.mark.parametrize(
    ("shows_queues", "file"), [(False, "rights-adopted.yaml"), (True, "rights-adopted-queues.yaml")]
)
def test_rbac_for_external_pods_equals_the_file_in_each_namespace(helm: Path, shows_queues: bool, file: str) -> None:
    values = minimal_with(jobs__namespace="hekla", jobs__adoptedNamespaces=["team-a"], jobs__showsQueues=shows_queues)
    made = render(helm, values, namespace="hekla")
    assert len([one for one in made if "adopted-queues" in one["metadata"]["name"]]) == (2 if shows_queues else 0)
    for one in yaml.safe_load_all((CHECKOUT / "deploy" / "kubernetes" / file).read_text()):
        (found,) = [other for other in of_kind(made, one["kind"]) if is_same_object(one, other)]
        for part in ("rules", "subjects"):
            assert found.get(part) == one.get(part)
        assert found["metadata"].get("namespace") == one["metadata"].get("namespace")


def is_same_object(one: Object, other: Object) -> bool:
    """Whether the names are equal, without the namespace prefix of cluster-wide names."""

    def names(of: Object) -> list[str]:
        return [name.rpartition(":")[2] for name in (of["metadata"]["name"], of.get("roleRef", {}).get("name", ""))]

    return names(one) == names(other)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("namespaceForEachTenant", "scheduledByVolcano"), "exclude each other"),
        (("portsOutside", "namespaceForEachTenant"), "jobs.portsOutside excludes"),
        (("portsOutside", "scheduledByVolcano"), "jobs.portsOutside excludes"),
        (("terminals", "namespaceForEachTenant"), "jobs.terminals excludes"),
        (("showsQueues",), "needs jobs.adoptedNamespaces"),
    ],
)
def test_conflicting_options_are_refused(helm: Path, options: tuple[str, ...], message: str) -> None:
    values = {f"jobs__{name}": True for name in options}
    with pytest.raises(Refused, match=message):
        render(helm, minimal_with(**values))
    assert render(helm, minimal_with(jobs__enabled=False, **values))


def test_without_jobs_there_is_no_rbac(helm: Path) -> None:
    objects = render(helm, minimal_with(jobs__enabled=False))
    assert not [one for one in objects if "rbac" in one["apiVersion"] or one["kind"] == "Namespace"]
    assert not any(pod["spec"]["automountServiceAccountToken"] for pod in pods(objects).values())


def test_volume_and_job_namespace_survive_uninstall(helm: Path) -> None:
    objects = render(helm, MINIMAL)
    retained_kinds = {one["kind"] for one in objects if "keep" in str(one["metadata"].get("annotations"))}
    assert retained_kinds == {"Namespace", "PersistentVolumeClaim"}


def test_existing_claim_is_used(helm: Path) -> None:
    objects = render(helm, minimal_with(persistence__existingClaim="nfs"))
    assert not of_kind(objects, "PersistentVolumeClaim")
    assert {"persistentVolumeClaim": {"claimName": "nfs"}, "name": "home"} in pods(objects)["web"]["spec"]["volumes"]


def test_kubeconfigs_of_other_clusters_are_mounted(helm: Path) -> None:
    for name in ("web", "control"):
        (container,) = pods(render(helm, full_values()))[name]["spec"]["containers"]
        assert "/var/lib/hekla/kubeconfigs" in [mount["mountPath"] for mount in container["volumeMounts"]]


def test_ingress_routes_the_public_host_to_web(helm: Path) -> None:
    objects = render(helm, minimal_with(ingress__enabled=True))
    spec = object_named(objects, "Ingress", "hekla")["spec"]
    assert [rule["host"] for rule in spec["rules"]] == spec["tls"][0]["hosts"] == ["hekla.example.org"]
    selector = object_named(objects, "Service", "hekla")["spec"]["selector"]
    labels = {name: pod["metadata"]["labels"] for name, pod in pods(objects).items()}
    assert [name for name, found in labels.items() if selector.items() <= found.items()] == ["web"]
    both = render(helm, minimal_with(ingress__enabled=True, settings__workbenchHost="tools.example.org"))
    spec = object_named(both, "Ingress", "hekla")["spec"]
    hosts = ["hekla.example.org", "tools.example.org"]
    assert [rule["host"] for rule in spec["rules"]] == spec["tls"][0]["hosts"] == hosts


def test_metrics_alerts_and_dashboard_equal_the_files(helm: Path) -> None:
    objects = render(helm, full_values(), *OF_FILES)
    assert object_named(objects, "PrometheusRule", "hekla")["spec"] == yaml.safe_load(RULES.read_text())
    assert (
        object_named(objects, "ConfigMap", "hekla-dashboard")["data"]["hekla.json"].strip()
        == DASHBOARD.read_text().strip()
    )
    (endpoint,) = object_named(objects, "PodMonitor", "hekla-web")["spec"]["podMetricsEndpoints"]
    assert endpoint["authorization"]["credentials"] == {"name": "hekla", "key": "HEKLA_METRICS_TOKEN"}
    for name in ("control", "default"):
        pod = pods(objects)[name]
        assert environment(pod)["HEKLA_METRICS_PORT"]["value"] == "9200"
        assert pod["spec"]["containers"][0]["ports"] == [{"name": "metrics", "containerPort": 9200}]


def test_metrics_are_off_by_default(helm: Path) -> None:
    made = render(helm, MINIMAL)
    assert not any("METRICS" in name for pod in pods(made).values() for name in environment(pod))
    assert not [one for one in made if one["apiVersion"].startswith("monitoring")]


def test_three_values_are_required(helm: Path) -> None:
    with pytest.raises(Refused) as refused:
        render(helm, {})
    assert all(name in str(refused.value) for name in ("/publicUrl", "/existingSecret", "/image/repository"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"publicUrl": "http://hekla.example.org"}, "at '/publicUrl'"),
        ({"publicUrl": "https://example.org/hekla"}, "at '/publicUrl'"),
        ({"secretKey": "of the example"}, "additional properties 'secretKey' not allowed"),
        ({"web__replica": 3}, "additional properties 'replica' not allowed"),
        ({"web__replicas": 0}, "at '/web/replicas': minimum"),
        ({"beat__replicas": 2}, "additional properties 'replicas' not allowed"),
        ({"settings__allowedHosts": ["*"]}, "at '/settings/allowedHosts/0'"),
        ({"settings__secondFactorFor": "nobody"}, "at '/settings/secondFactorFor'"),
        ({"settings__trustedProxies": ["*"]}, "at '/settings/trustedProxies/0'"),
        ({"settings__extenders": ["extender.ml"]}, "at '/settings/extenders/0'"),
        ({"persistence__size": "much"}, "at '/persistence/size'"),
        ({"persistence__accessMode": "ReadWriteOnce"}, "at '/nodeSelector': minProperties"),
        ({"image__digest": "latest"}, "at '/image/digest'"),
    ],
)
def test_invalid_values_are_refused_with_their_path(helm: Path, change: Object, message: str) -> None:
    with pytest.raises(Refused, match=re.escape(message)):
        render(helm, minimal_with(**change))


def test_read_write_once_volume_with_a_node_selector(helm: Path) -> None:
    one = minimal_with(persistence__accessMode="ReadWriteOnce", nodeSelector={"kubernetes.io/hostname": "one"})
    assert of_kind(render(helm, one), "PersistentVolumeClaim")[0]["spec"]["accessModes"] == ["ReadWriteOnce"]


def test_readme_example_is_rendered(helm: Path) -> None:
    (example,) = re.findall(r"^ *```yaml\n(.*?)^ *```", (CHART / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    assert set(PROCESSES) < set(pods(render(helm, yaml.safe_load(example))))


def test_chart_version_equals_the_platform_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == chart["version"] == hekla.__version__


def test_every_value_has_a_comment_a_schema_and_a_test_value() -> None:
    text = (CHART / "values.yaml").read_text()
    schema = yaml.safe_load((CHART / "values.schema.json").read_text())
    assert set(yaml.safe_load(text)) == set(schema["properties"]) - {"global"} == set(full_values())
    assert [group for group in text.split("\n\n") if not group.startswith("#")] == []
