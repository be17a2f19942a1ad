"""The programs for tests with Kubernetes: a control plane, Helm, and Volcano."""

import re
from pathlib import Path

from tests.kubernetes.go_programs import GoPrograms

HERE = Path(__file__).resolve().parent


def _release_ldflags() -> str:
    """Linker flags that omit symbols and set the version that a release of Kubernetes reports."""
    (found,) = re.finditer(r"k8s\.io/kubernetes (v(\d+)\.(\d+)\S*)", (HERE / "go.mod").read_text())
    values = {"gitVersion": found[1], "gitMajor": found[2], "gitMinor": found[3]}
    return "-s -w " + " ".join(f"-X k8s.io/component-base/version.{name}={value}" for name, value in values.items())


CONTROL_PLANE = GoPrograms(
    "Kubernetes control plane",
    HERE,
    "hekla-kubernetes",
    {
        "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
        "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
        "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
        "kubectl": "k8s.io/kubernetes/cmd/kubectl",
        "kwok": "sigs.k8s.io/kwok/cmd/kwok",
        "etcd": "go.etcd.io/etcd/server/v3",
    },
    _release_ldflags(),
)
HELM = GoPrograms("Helm", HERE / "helm", "hekla-helm", {"helm": "helm.sh/helm/v4/cmd/helm"})
VOLCANO = GoPrograms(
    "Volcano",
    HERE / "volcano",
    "hekla-volcano",
    {
        "controller-manager": "volcano.sh/volcano/cmd/controller-manager",
        "scheduler": "volcano.sh/volcano/cmd/scheduler",
    },
    extra_files=("volcano.sh/volcano", "config/crd/volcano/bases"),
)
