"""The settings of a cluster as fields: every configuration survives the way into the form and back."""

from typing import Annotated, Any, Literal

import pytest
from django.http import QueryDict
from pydantic import Field

from hekla.backends import registry
from hekla.backends.config import BackendConfig
from hekla.domain.errors import Invalid
from hekla.pages.clusters.settings_form import entry, texts
from hekla.pages.clusters.settings_form.fields import fields_of
from hekla.pages.clusters.settings_form.form import SettingsForm
from hekla.pages.clusters.settings_form.summary import settings_of

NODE = {
    "name": "gpu",
    "count": 4,
    "allocatable": {"cpu": 64, "memory": "8Gi"},
    "labels": {"example.com/rack": "r1"},
    "cards": [{"model": "H100", "count": 8}, {"resource": "huawei.com/Ascend910"}],
    "taints": [{"key": "a", "effect": "NoSchedule"}],
    "numa": {"cells": [4, 4]},
    "usage": {},
}
SIMULATED: dict[str, Any] = {
    "nodes": [NODE, {"name": "cpu", "allocatable": {}}],
    "prepare_seconds": {"min": 1, "max": 2},
    "speed": 60.0,
    "disruption_budgets": [{"name": "x", "selector": {"match_labels": {"a": "b"}}, "min_available": "50%"}],
    "topology_labels": ["a/b"],
    "runtime_classes": {"kata": {"cpu": "250m"}},
}
KUBERNETES = {
    "kubeconfig": "token",
    "namespaces": "tenant",
    "internet": False,
    "name_servers": [],
    "external_pods": {"namespaces": {"a": "b"}, "owner": "ada"},
    "ingress": None,
    "capabilities": ["NET_BIND_SERVICE"],
    "prometheus": {"address": "http://x:1"},
}
LOCAL = {"allocatable": {"cpu": "4"}, "cards": [{"count": 2}], "topology_policy": "none", "shared_folders": ["/data"]}
CONFIGURATIONS = [
    ("simulated", {}),
    ("simulated", {"nodes": []}),
    ("simulated", SIMULATED),
    ("simulated", {"nodes": [NODE] * 50}),
    ("kubernetes", {}),
    ("kubernetes", KUBERNETES),
    ("local", {}),
    ("local", LOCAL),
]


def sent(form: SettingsForm) -> QueryDict:
    """What a browser sends for the form as it is shown."""
    data = QueryDict(mutable=True)
    for name in form.fields:
        bound = form[name]
        value: Any = bound.value()
        if isinstance(value, list):
            data.setlist(bound.html_name, value)
        elif value is True or value not in (None, False):
            data[bound.html_name] = "on" if value is True else str(value).replace("\n", "\r\n")
    return data


def form_of(kind: str, config: dict[str, Any], **changed: str) -> SettingsForm:
    """The form after a person changed these fields."""
    model = registry.kinds()[kind].config
    data = sent(SettingsForm(model, config))
    for name, text in changed.items():
        data[f"settings-{name.replace('__', '-')}"] = text
    return SettingsForm(model, config, data)


@pytest.mark.parametrize(("kind", "config"), CONFIGURATIONS)
def test_untouched_form_gives_the_same_configuration(kind: str, config: dict[str, Any]) -> None:
    form = form_of(kind, config)
    assert form.is_valid(), form.errors
    assert form.config() == config
    form.require_valid()
    assert not form.errors


def test_a_first_row_becomes_a_node_with_its_cards() -> None:
    form = form_of(
        "simulated",
        {},
        nodes__0__name="gpu",
        nodes__0__count="4",
        nodes__0__allocatable="cpu=64, memory=512Gi",
        nodes__0__cards__0__model="H100",
        nodes__0__cards__0__count="8",
        speed="120",
    )
    assert form.is_valid()
    form.require_valid()
    node = {"name": "gpu", "count": 4, "allocatable": {"cpu": "64", "memory": "512Gi"}}
    assert form.config() == {"nodes": [{**node, "cards": [{"model": "H100", "count": 8}]}], "speed": 120}


def test_rows_are_added_and_removed_and_emptied_values_go() -> None:
    model = registry.kinds()["simulated"].config
    more = form_of("simulated", SIMULATED).data.copy()
    more["more"] = "nodes"
    assert len(SettingsForm(model, SIMULATED, more).root.main[0].rows or ()) == 3
    form = form_of("simulated", SIMULATED, nodes__0__remove="on", speed="", topology_labels="")
    assert form.config()["nodes"] == [{"name": "cpu", "allocatable": {}}]
    assert not form.config().keys() & {"speed", "topology_labels"}


def test_number_of_rows_is_bounded() -> None:
    model, data = registry.kinds()["simulated"].config, QueryDict(mutable=True)
    data.update({f"settings-nodes-9999-cards-{n}-model": "x" for n in range(0, 9999, 99)})
    assert len(SettingsForm(model, {}, data).fields) < 2000
    short = form_of("simulated", {"nodes": [NODE] * 9})
    again = SettingsForm(model, {"nodes": [NODE] * 50}, short.data)
    assert again.config()["nodes"] == [NODE] * 9, "the page showed rows"
    long = form_of("simulated", {"nodes": [NODE] * 50}, nodes='[{"name": "x"}]')
    long.require_valid()
    assert "required" in str(long.errors["nodes"]).lower()


@pytest.mark.parametrize(
    ("kind", "changed", "field", "sentence"),
    [
        ("simulated", {"nodes__0__count": "many"}, "nodes-0-count", "Enter a whole number."),
        ("simulated", {"speed": "inf"}, "speed", "Enter a number."),
        ("simulated", {"nodes__0__allocatable": "cpu"}, "nodes-0-allocatable", "name=value"),
        ("simulated", {"nodes__0__allocatable": "cpu=lots"}, "nodes-0-allocatable", "not an amount"),
        ("simulated", {"devices": "{"}, "devices", "JSON"),
        ("simulated", {"nodes__0__name": "x"}, "nodes-0-allocatable", "required"),
        ("simulated", {"failure_rate": "7"}, "failure_rate", ""),
        ("kubernetes", {"ingress__domain": "example.com"}, "ingress-class_name", "required"),
        ("kubernetes", {"namespace": "Not A Name"}, "namespace", ""),
        ("kubernetes", {"scheduler": "slurm"}, "scheduler", ""),
        ("local", {"reserved_cpus": "0-1"}, "", "cpu_policy"),
    ],
)
def test_problems_are_at_their_fields(kind: str, changed: dict[str, str], field: str, sentence: str) -> None:
    form = form_of(kind, {}, **changed)
    if not field:
        with pytest.raises(Invalid, match=sentence):
            form.require_valid()
        return
    if form.is_valid():
        form.require_valid()
    assert field in form.errors, form.errors
    assert sentence.lower() in str(form.errors[field]).lower()


def test_either_the_fields_or_the_document_count() -> None:
    data = form_of("simulated", SIMULATED, speed="90").data.copy()
    document = entry.document(SIMULATED)
    data.update({"config": document, "config_base": document, "config_kind": "simulated"})
    found = entry.read("simulated", data, {})
    assert found.is_valid
    assert '"speed": 90' in (found.data or {})["config"]
    data["config"] = "{}"
    assert not entry.read("simulated", data, {}).is_valid, "both were changed"
    data["settings-speed"] = "60.0"
    found = entry.read("simulated", data, {})
    assert found.is_valid
    assert (found.data or {})["config"] == "{}"


def test_another_kind_shows_its_own_fields_first() -> None:
    data = form_of("simulated", SIMULATED).data.copy()
    data.update({"config": "{}", "config_base": "{}", "config_kind": "simulated"})
    found = entry.read("kubernetes", data, {})
    assert found.is_unfinished
    assert found.form is not None
    assert "namespaces" in found.form.fields


class _SlurmConfig(BackendConfig):
    """A backend of another package, that declares its words at the fields."""

    partition: str = Field(title="Partition", description="Where jobs run.")
    nice: Annotated[int, Field(ge=0, le=10)] = 0
    mode: Literal["batch", "step"] = "batch"
    limits: dict[str, dict[str, int]] = {}


def test_any_backend_gets_fields_from_its_model() -> None:
    form = SettingsForm(_SlurmConfig, {"partition": "gpu"})
    assert [field.label for field in form.fields.values()] == ["Partition", "Nice", "Mode", "Limits"]
    assert form.fields["partition"].help_text == "Where jobs run."
    assert form["nice"].field.widget.attrs["max"] == 10
    changed = sent(form)
    changed["settings-mode"], changed["settings-limits"] = "step", '{"a": {"b": 1}}'
    assert SettingsForm(_SlurmConfig, {"partition": "gpu"}, changed).config() == {
        "partition": "gpu",
        "mode": "step",
        "limits": {"a": {"b": 1}},
    }


def test_settings_are_readable_on_the_page_of_the_cluster() -> None:
    found = dict(settings_of("simulated", SIMULATED))
    assert found["Speed"] == "60.0"
    assert "Number of equal nodes: 4" in found["Nodes"]
    assert "Model: H100" in found["Nodes"]


@pytest.mark.parametrize(
    ("line", "pairs"),
    [
        ("cpu=16, memory=64Gi,", {"cpu": "16", "memory": "64Gi"}),
        ("options=a=1,b=2", {"options": "a=1,b=2"}),
        ("list=a,b", {"list": "a,b"}),
    ],
)
def test_values_of_pairs_may_have_the_same_signs(line: str, pairs: dict[str, str]) -> None:
    (field,) = [one for one in fields_of(registry.kinds()["local"].config) if one.name == "annotations"]
    assert texts.value_of(field, line) == pairs
