"""What the chart makes of its values: the processes of `manage.py up`, with settings that exist, and little power."""

import re
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
    full,
    lint,
    of_kind,
    pods,
    render,
    the,
)
from tests.support.processes import PROCESSES, commands_of_up

import hekla
from hekla.lib.checkout import CHECKOUT
from hekla.project.config import Config

_KNOWN = {field.validation_alias or f"HEKLA_{name.upper()}" for name, field in Config.model_fields.items()}
_OF_OTHERS = {"FORWARDED_ALLOW_IPS", "PGOPTIONS", "POD_IP"}  # uvicorn's, libpq's, and one that another names
_NOT_OF_A_CLUSTER = {"HEKLA_HOME", "HEKLA_DEBUG", "HEKLA_CHECK_ENGINE"}  # the image's, and for developers
EVERY = pytest.mark.parametrize("values", [MINIMAL, full()], ids=["minimal", "full"])


def changed(**values: Any) -> Object:
    """The minimal values and these; `a__b` is `b` of `a`."""
    made: Object = {**MINIMAL}
    for name, value in values.items():
        inside, _, last = name.rpartition("__")
        made[inside or last] = {**made.get(inside, {}), last: value} if inside else value
    return made


def containers(objects: list[Object]) -> Iterator[Object]:
    for pod in pods(objects).values():
        yield from pod["spec"]["containers"]
        yield from pod["spec"].get("initContainers", [])


@EVERY
def test_helm_finds_nothing_to_say_of_it(helm: Path, values: Object) -> None:
    assert "1 chart(s) linted, 0 chart(s) failed" in lint(helm, values)


@pytest.mark.parametrize("name", PROCESSES)
def test_each_process_is_started_as_up_starts_it(helm: Path, name: str) -> None:
    (container,) = pods(render(helm, MINIMAL))[name]["spec"]["containers"]
    python, module, *argv = container["command"]
    assert (python, module) == ("python", "-m")
    assert ["127.0.0.1" if word == "0.0.0.0" else word for word in argv] == commands_of_up()[name]


@EVERY
def test_what_is_set_is_a_setting(helm: Path, values: Object) -> None:
    made = pods(render(helm, values))
    assert {name for pod in made.values() for name in environment(pod)} - _OF_OTHERS <= _KNOWN


def test_every_setting_of_a_deployment_can_be_set(helm: Path) -> None:
    made = pods(render(helm, full()))
    assert {name for pod in made.values() for name in environment(pod)} >= _KNOWN - _NOT_OF_A_CLUSTER


def test_values_become_settings_of_every_process(helm: Path) -> None:
    for pod in pods(render(helm, full())).values():
        told = {name: variable.get("value") for name, variable in environment(pod).items()}
        assert told["HEKLA_PUBLIC_URL"] == "https://hekla.example.org"
        assert told["HEKLA_ALLOWED_HOSTS"] == "hekla.example.org,localhost,hekla.example.net,$(POD_IP)"
        assert told["FORWARDED_ALLOW_IPS"] == "127.0.0.1,10.244.0.0/16,fd00:10:244::/56"
        assert told["HEKLA_SECOND_FACTOR_FOR"] == "admins"
        assert told["HEKLA_TRIES_A_MINUTE"] == "30"


@EVERY
def test_secrets_come_from_the_given_secret_alone(helm: Path, values: Object) -> None:
    objects = render(helm, values)
    assert not of_kind(objects, "Secret")
    for pod in pods(objects).values():
        for name in ("HEKLA_SECRET_KEY", "DATABASE_URL", "VALKEY_URL"):
            assert environment(pod)[name]["valueFrom"] == {"secretKeyRef": {"name": "hekla", "key": name}}


@EVERY
def test_containers_have_no_more_power_than_they_need(helm: Path, values: Object) -> None:
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


def test_only_what_works_on_clusters_has_a_key_to_this_one_and_the_folder(helm: Path) -> None:
    made = {name: pod["spec"] for name, pod in pods(render(helm, MINIMAL)).items()}
    trusted = {"web", "control"}
    assert {name for name, spec in made.items() if spec["automountServiceAccountToken"]} == trusted
    shared = {name: [one for one in spec["volumes"] if "persistentVolumeClaim" in one] for name, spec in made.items()}
    assert {name for name, volumes in shared.items() if volumes} == trusted


def test_the_user_and_the_folder_are_those_of_the_image(helm: Path) -> None:
    text = (CHECKOUT / "deploy" / "compose" / "Dockerfile").read_text()
    user, group = re.findall(r"^USER (\d+):(\d+)$", text, re.MULTILINE)[0]
    (home,) = re.findall(r"HEKLA_HOME=(\S+)", text)
    for pod in pods(render(helm, MINIMAL)).values():
        context = pod["spec"]["securityContext"]
        assert (context["runAsUser"], context["runAsGroup"]) == (int(user), int(group))
        assert home in [mount["mountPath"] for mount in pod["spec"]["containers"][0]["volumeMounts"]]


def test_there_is_one_clock_and_never_two(helm: Path) -> None:
    spec = the(render(helm, full()), "Deployment", "hekla-beat")["spec"]
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})


def test_the_others_are_replaced_one_by_one_without_a_gap(helm: Path) -> None:
    for name in ("web", "control", "default"):
        strategy = the(render(helm, MINIMAL), "Deployment", f"hekla-{name}")["spec"]["strategy"]
        assert strategy == {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}


def test_web_is_asked_by_a_name_that_it_answers_to_whether_it_lives_and_is_ready(helm: Path) -> None:
    web = pods(render(helm, MINIMAL))["web"]
    (container,) = web["spec"]["containers"]
    asked = {name: container[f"{name}Probe"]["httpGet"] for name in ("startup", "liveness", "readiness")}
    assert {name: get["path"] for name, get in asked.items()} == {
        "startup": "/livez",
        "liveness": "/livez",
        "readiness": "/readyz",
    }
    hosts = environment(web)["HEKLA_ALLOWED_HOSTS"]["value"].split(",")
    assert all(get["httpHeaders"] == [{"name": "Host", "value": "localhost"}] for get in asked.values())
    assert hosts == ["hekla.example.org", "localhost"]


def test_web_serves_on_until_no_proxy_sends_it_more(helm: Path) -> None:
    spec = pods(render(helm, MINIMAL))["web"]["spec"]
    pause = spec["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert 0 < pause < spec["terminationGracePeriodSeconds"]


def test_tables_change_before_the_processes_do(helm: Path) -> None:
    (job,) = of_kind(render(helm, MINIMAL), "Job")
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"
    needed = yaml.safe_dump(job["spec"]["template"])
    assert "persistentVolumeClaim" not in needed  # at the first install nothing else of the release is there
    assert "serviceAccountName" not in needed


@EVERY
def test_no_process_starts_before_the_tables_are_as_it_wants_them(helm: Path, values: Object) -> None:
    made = pods(render(helm, values))
    for name in PROCESSES:
        (wait,) = made[name]["spec"]["initContainers"]
        assert "python -m django migrate --check" in wait["command"][-1]


def test_the_tables_are_changed_by_the_commands_of_the_containers(helm: Path) -> None:
    compose = yaml.safe_load((CHECKOUT / "deploy" / "compose" / "compose.yaml").read_text())
    (container,) = pods(render(helm, MINIMAL))["tables"]["spec"]["containers"]
    assert container["command"] == compose["services"]["tables"]["command"]


@pytest.mark.django_db
def test_a_change_of_tables_does_not_keep_others_waiting(helm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = pods(render(helm, MINIMAL))
    monkeypatch.setenv("PGOPTIONS", environment(made["tables"])["PGOPTIONS"]["value"])
    beside = connection.copy()
    with beside.cursor() as cursor:
        cursor.execute("SHOW lock_timeout")
        assert cursor.fetchone() == ("10s",)
    beside.close()
    assert all("PGOPTIONS" not in environment(made[name]) for name in PROCESSES)


def test_without_hooks_another_version_is_another_job(helm: Path) -> None:
    names = {
        the_job["metadata"]["name"]
        for tag in ("1", "2")
        for the_job in of_kind(render(helm, changed(tables__hook=False, image__tag=tag)), "Job")
    }
    assert len(names) == 2


@pytest.mark.parametrize("change", [{"secretVersion": "2"}, {"settings__timeZone": "Asia/Shanghai"}])
def test_changed_settings_start_every_process_anew(helm: Path, change: Object) -> None:
    before, after = pods(render(helm, MINIMAL)), pods(render(helm, changed(**change)))
    assert all(before[name] != after[name] for name in PROCESSES)


@pytest.mark.parametrize(
    ("more", "switched"),
    [
        ((), {}),
        (("rights-tenants.yaml",), {"jobs__namespaceForEachTenant": True}),
        (("rights-volcano.yaml",), {"jobs__scheduledByVolcano": True}),
        (("rights-priorities.yaml",), {"jobs__priorityClasses": True}),
        (("rights-ports.yaml",), {"jobs__portsOutside": True}),
    ],
)
def test_rights_are_those_of_the_files_for_clusters(helm: Path, more: tuple[str, ...], switched: Object) -> None:
    texts = [(CHECKOUT / "deploy" / "kubernetes" / file).read_text() for file in ("rights.yaml", *more)]
    documents = [one for text in texts for one in yaml.safe_load_all(text)]
    wanted = [one for one in documents if one["kind"] not in ("Namespace", "ServiceAccount")]
    values = changed(jobs__namespace="hekla", **switched)
    made = render(helm, values, namespace="hekla")
    for one in wanted:
        (found,) = [other for other in of_kind(made, one["kind"]) if alike(one, other)]
        assert str(found.get("rules")).replace("hekla:hekla-", "hekla-") == str(one.get("rules"))
        assert found.get("subjects") == one.get("subjects")
        assert found["metadata"].get("namespace") == one["metadata"].get("namespace")
    assert len(wanted) == len([one for one in made if "rbac" in one["apiVersion"]])


@pytest.mark.parametrize(
    ("shows_queues", "file"), [(False, "rights-adopted.yaml"), (True, "rights-adopted-queues.yaml")]
)
def test_rights_for_pods_of_others_are_those_of_the_file_in_each_namespace_that_is_named(
    helm: Path, shows_queues: bool, file: str
) -> None:
    values = changed(jobs__namespace="hekla", jobs__adoptedNamespaces=["team-a"], jobs__showsQueues=shows_queues)
    made = render(helm, values, namespace="hekla")
    assert len([one for one in made if "adopted-queues" in one["metadata"]["name"]]) == (2 if shows_queues else 0)
    for one in yaml.safe_load_all((CHECKOUT / "deploy" / "kubernetes" / file).read_text()):
        (found,) = [other for other in of_kind(made, one["kind"]) if alike(one, other)]
        for part in ("rules", "subjects"):
            assert found.get(part) == one.get(part)
        assert found["metadata"].get("namespace") == one["metadata"].get("namespace")


def alike(one: Object, other: Object) -> bool:
    """That one is about the same as the other: a namespace stands before names of the whole cluster."""

    def names(of: Object) -> list[str]:
        return [name.rpartition(":")[2] for name in (of["metadata"]["name"], of.get("roleRef", {}).get("name", ""))]

    return names(one) == names(other)


@pytest.mark.parametrize(
    ("switched", "told"),
    [
        (("namespaceForEachTenant", "scheduledByVolcano"), "exclude each other"),
        (("portsOutside", "namespaceForEachTenant"), "jobs.portsOutside excludes"),
        (("portsOutside", "scheduledByVolcano"), "jobs.portsOutside excludes"),
        (("showsQueues",), "needs jobs.adoptedNamespaces"),
    ],
)
def test_rights_that_no_configuration_uses_are_refused(helm: Path, switched: tuple[str, ...], told: str) -> None:
    values = {f"jobs__{name}": True for name in switched}
    with pytest.raises(Refused, match=told):
        render(helm, changed(**values))
    assert render(helm, changed(jobs__enabled=False, **values))


def test_without_jobs_of_this_cluster_nothing_has_rights_in_it(helm: Path) -> None:
    objects = render(helm, changed(jobs__enabled=False))
    assert not [one for one in objects if "rbac" in one["apiVersion"] or one["kind"] == "Namespace"]
    assert not any(pod["spec"]["automountServiceAccountToken"] for pod in pods(objects).values())


def test_the_folder_and_the_pods_of_people_stay_when_the_chart_is_removed(helm: Path) -> None:
    objects = render(helm, MINIMAL)
    kept = {one["kind"] for one in objects if "keep" in str(one["metadata"].get("annotations"))}
    assert kept == {"Namespace", "PersistentVolumeClaim"}


def test_a_claim_of_ones_own_is_used(helm: Path) -> None:
    objects = render(helm, changed(persistence__existingClaim="nfs"))
    assert not of_kind(objects, "PersistentVolumeClaim")
    assert {"persistentVolumeClaim": {"claimName": "nfs"}, "name": "home"} in pods(objects)["web"]["spec"]["volumes"]


def test_kubeconfigs_of_other_clusters_lie_where_the_console_looks_for_them(helm: Path) -> None:
    for name in ("web", "control"):
        (container,) = pods(render(helm, full()))[name]["spec"]["containers"]
        assert "/var/lib/hekla/kubeconfigs" in [mount["mountPath"] for mount in container["volumeMounts"]]


def test_the_ingress_leads_the_public_name_to_web(helm: Path) -> None:
    objects = render(helm, changed(ingress__enabled=True))
    spec = the(objects, "Ingress", "hekla")["spec"]
    assert [rule["host"] for rule in spec["rules"]] == spec["tls"][0]["hosts"] == ["hekla.example.org"]
    selector = the(objects, "Service", "hekla")["spec"]["selector"]
    labels = {name: pod["metadata"]["labels"] for name, pod in pods(objects).items()}
    assert [name for name, found in labels.items() if selector.items() <= found.items()] == ["web"]


def test_figures_alerts_and_dashboard_are_those_of_the_files(helm: Path) -> None:
    objects = render(helm, full(), *OF_FILES)
    assert the(objects, "PrometheusRule", "hekla")["spec"] == yaml.safe_load(RULES.read_text())
    assert the(objects, "ConfigMap", "hekla-dashboard")["data"]["hekla.json"].strip() == DASHBOARD.read_text().strip()
    (endpoint,) = the(objects, "PodMonitor", "hekla-web")["spec"]["podMetricsEndpoints"]
    assert endpoint["authorization"]["credentials"] == {"name": "hekla", "key": "HEKLA_METRICS_TOKEN"}
    for name in ("control", "default"):
        pod = pods(objects)[name]
        assert environment(pod)["HEKLA_METRICS_PORT"]["value"] == "9200"
        assert pod["spec"]["containers"][0]["ports"] == [{"name": "metrics", "containerPort": 9200}]


def test_nobody_reads_figures_before_they_are_asked_for(helm: Path) -> None:
    made = render(helm, MINIMAL)
    assert not any("METRICS" in name for pod in pods(made).values() for name in environment(pod))
    assert not [one for one in made if one["apiVersion"].startswith("monitoring")]


def test_nothing_is_rendered_before_the_three_necessary_values_are_set(helm: Path) -> None:
    with pytest.raises(Refused) as refused:
        render(helm, {})
    assert all(name in str(refused.value) for name in ("/publicUrl", "/existingSecret", "/image/repository"))


@pytest.mark.parametrize(
    ("change", "told"),
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
        ({"persistence__size": "much"}, "at '/persistence/size'"),
        ({"persistence__accessMode": "ReadWriteOnce"}, "at '/nodeSelector': minProperties"),
        ({"image__digest": "latest"}, "at '/image/digest'"),
    ],
)
def test_nonsense_is_refused_with_its_place(helm: Path, change: Object, told: str) -> None:
    with pytest.raises(Refused, match=re.escape(told)):
        render(helm, changed(**change))


def test_one_machine_may_mount_the_folder_alone(helm: Path) -> None:
    one = changed(persistence__accessMode="ReadWriteOnce", nodeSelector={"kubernetes.io/hostname": "one"})
    assert of_kind(render(helm, one), "PersistentVolumeClaim")[0]["spec"]["accessModes"] == ["ReadWriteOnce"]


def test_the_example_of_the_readme_is_rendered(helm: Path) -> None:
    (example,) = re.findall(r"^ *```yaml\n(.*?)^ *```", (CHART / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    assert set(PROCESSES) < set(pods(render(helm, yaml.safe_load(example))))


def test_the_chart_has_the_version_of_the_platform() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == chart["version"] == hekla.__version__


def test_every_value_is_explained_checked_and_tried() -> None:
    text = (CHART / "values.yaml").read_text()
    schema = yaml.safe_load((CHART / "values.schema.json").read_text())
    assert set(yaml.safe_load(text)) == set(schema["properties"]) - {"global"} == set(full())
    assert [group for group in text.split("\n\n") if not group.startswith("#")] == []
