"""What a person says of a Kubernetes cluster."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from hekla.backends import config
from hekla.domain.errors import Problem
from hekla.domain.translation import translate
from hekla.domain.validation import InconsistentFields

MAX_PREFIX = 40
"""Of the 63 characters of a namespace's name, where those of a tenant are to follow."""
_OBJECT = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"
_DOMAIN = r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$"
_NAME = r"^[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?$"


class ExternalPodsSettings(config.BackendConfig):
    """Which pods of others are placed from here. What is not said here is left alone.

    `namespaces`: by namespace the slug of the tenant whose jobs its pods become. `queue`: for pods that name no queue
    that the tenant has here. `owner`: the account to which those jobs belong. `scheduler_name`: how pods ask for it.
    `admits_groups`: whether PodGroups that have no pods yet are let in too, for operators that make pods only then; not
    where Volcano does that. `shows_queues`: whether all queues of the cluster are Queues of Volcano's kind there, with
    what they hold, for whoever may look at those; not where Volcano runs either.
    """

    namespaces: Annotated[
        dict[
            Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")], Annotated[str, Field(min_length=1)]
        ],
        Field(min_length=1, max_length=50),
    ]
    queue: Annotated[str, Field(min_length=1, max_length=63)] = "default"
    owner: Annotated[str, Field(min_length=1, max_length=150)]
    scheduler_name: Annotated[str, Field(pattern=_NAME)] = "hekla"
    admits_groups: bool = False
    shows_queues: bool = False


class IngressConfig(config.BackendConfig):
    """How people outside of the cluster come to ports that jobs name; whoever reaches the proxy reaches them.

    `domain`: below which each port has a host of its own; all such names must lead to the proxy. `class_name`: which
    proxy, as Ingresses name it. `namespace`: where that runs. `tls`: it serves these hosts by HTTPS.
    """

    domain: Annotated[str, Field(pattern=_DOMAIN, max_length=200)]
    class_name: Annotated[str, Field(pattern=_NAME)]
    namespace: Annotated[str, Field(pattern=_NAME)]
    tls: bool = False


class KubernetesConfig(config.BackendConfig):
    """Where the API server is, and which pods and nodes are ours.

    - `kubeconfig`: the name of a file in the folder `kubeconfigs` of the data folder. It holds the key to the cluster
      where the console has none. Empty: this console runs in the cluster and uses its service account.
    - `context`: a context of that file; empty: its current one.
    - `namespace`: where our pods are.
    - `node_labels`: only nodes with all of these labels are used.
    - `image`: of pods that name none.
    - `scheduler`: who places pods: our engine, or Volcano, to which whole jobs are then delegated.
    - `external_pods`: which pods that others made our engine places too.
    - `namespaces`: `shared`: all pods are in one namespace; `tenant`: each tenant has its own, with that prefix.
    - `claims`: the PersistentVolumeClaims of a shared namespace that jobs of all tenants may mount. In a namespace of
      its own a tenant may mount all.
    - `tenant_role`: the ClusterRole that we give ourselves in each tenant's namespace.
    - `priority_classes`: whether pods get the cluster's priority class that their job names, or one that we make, where
      our engine places them.
    - `ingress`: how people outside the cluster reach ports of jobs; None: they do not.
    """

    kubeconfig: Annotated[str, Field(pattern=rf"^$|{_NAME}", max_length=63)] = ""
    context: Annotated[str, Field(max_length=253)] = ""
    namespace: Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")] = "hekla"
    node_labels: dict[str, str] = {}
    image: Annotated[str, Field(min_length=1, max_length=500)] = "python:3.11-slim"
    scheduler: Literal["hekla", "volcano"] = "hekla"
    external_pods: ExternalPodsSettings | None = None
    namespaces: Literal["shared", "tenant"] = "shared"
    claims: Annotated[tuple[Annotated[str, Field(pattern=_OBJECT, max_length=253)], ...], Field(max_length=1000)] = ()
    tenant_role: Annotated[str, Field(min_length=1, max_length=253)] = "hekla-tenants"
    priority_classes: bool = False
    ingress: IngressConfig | None = None

    @model_validator(mode="after")
    def _check_ingress(self) -> Self:
        """Where we make the pods, with rights in one namespace."""
        if self.ingress is not None and (self.namespaces != "shared" or self.scheduler != "hekla"):
            sentence = translate("Ports are exposed only where Hekla schedules pods, all in one namespace.")
            raise InconsistentFields([Problem("ingress", sentence)])
        return self

    @model_validator(mode="after")
    def _check_namespaces(self) -> Self:
        """Tenants are kept apart where we make the pods, and have names that begin with that of the namespace."""
        if self.namespaces == "shared":
            return self
        if self.scheduler != "hekla":
            sentence = translate("Volcano keeps the jobs of a cluster in one namespace. Use “shared”.")
            raise InconsistentFields([Problem("namespaces", sentence)])
        if len(self.namespace) > MAX_PREFIX:
            sentence = translate("At most {most} characters, because tenant names are appended.", most=MAX_PREFIX)
            raise InconsistentFields([Problem("namespace", sentence)])
        return self
