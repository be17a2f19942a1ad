"""Which PodDisruptionBudgets are reported to the scheduler, and for which labels."""

from typing import Any

import pytest

from hekla.backends.config import parse_config
from hekla.backends.kubernetes.budget_store import BudgetStore
from hekla.backends.kubernetes.config import KubernetesConfig
from hekla.backends.kubernetes.layout import NamespaceLayout
from hekla.backends.kubernetes.object_store import ObjectStore

OWN = {"hekla.dev/job": "j"}


def reported(monkeypatch: pytest.MonkeyPatch, config: dict[str, Any], namespace: str, selector: Any) -> list[Any]:
    """The budgets that are reported if the namespace has one with this selector; `others` is of external pods."""
    monkeypatch.setattr(ObjectStore, "follow", lambda _self: None)
    nowhere: Any = None
    layout = NamespaceLayout(parse_config(KubernetesConfig, config))
    store = BudgetStore(nowhere, layout, lambda: None, ["others"])
    meta = {"namespace": namespace, "name": "b", "resourceVersion": "1"}
    spec = {} if selector is None else {"selector": selector}
    store._stores[0].put({"metadata": meta, "spec": spec, "status": {"disruptionsAllowed": 2}})
    found = store.list_budgets({"lab"})
    assert store.list_budgets({"lab"}) is found
    return [(one.body["metadata"]["namespace"], one.body["spec"]["selector"], one.body["status"]) for one in found]


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        (None, None),
        ({}, {"matchLabels": {}, "matchExpressions": []}),
        ({"matchLabels": OWN}, {"matchLabels": OWN, "matchExpressions": []}),
        ({"matchLabels": {**OWN, "app": "web"}}, None),
        ({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, None),
        (
            {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]},
            {"matchLabels": {}, "matchExpressions": []},
        ),
    ],
)
def test_pods_of_a_shared_namespace_carry_only_labels_of_hekla(
    monkeypatch: pytest.MonkeyPatch, selector: Any, expected: Any
) -> None:
    found = reported(monkeypatch, {"namespace": "jobs"}, "jobs", selector)
    assert found == ([] if expected is None else [("", expected, {"disruptionsAllowed": 2})])


@pytest.mark.parametrize(
    ("namespace", "scope"), [("jobs-lab", "lab"), ("others", "external:others"), ("jobs-other", None), ("kube", None)]
)
def test_budget_counts_for_the_pods_of_its_namespace(
    monkeypatch: pytest.MonkeyPatch, namespace: str, scope: str | None
) -> None:
    web = {"matchLabels": {"app": "web"}}
    found = reported(monkeypatch, {"namespace": "jobs", "namespaces": "tenant"}, namespace, web)
    assert found == ([] if scope is None else [(scope, web, {"disruptionsAllowed": 2})])
