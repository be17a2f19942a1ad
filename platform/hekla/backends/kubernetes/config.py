"""The configuration of a Kubernetes cluster."""

import ipaddress
from typing import Annotated, ClassVar, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from hekla.backends import config
from hekla.backends.kubernetes import config_words
from hekla.domain.errors import Problem
from hekla.domain.translation import translate
from hekla.domain.validation import InconsistentFields

MAX_PREFIX = 40
"""Of the 63 characters of a namespace's name, because the tenant's name follows the prefix."""
MAX_PORT = 65_535
_OBJECT = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"
_DOMAIN = r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$"
_NAME = r"^[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?$"


METADATA = ("100.100.100.200/32", "169.254.0.0/16", "192.0.0.192/32", "fd00:ec2::254/128", "fe80::/10")
"""The metadata services of clouds, which give credentials of the node, and the addresses of the link."""
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def is_within(inner: Network, outer: Network) -> bool:
    """Whether all addresses of one range are in the other."""
    return inner.version == outer.version and inner.subnet_of(outer)  # type: ignore[arg-type]


def _servers(text: str) -> str:
    """A range of addresses of name servers, also those of the link, in its usual form. Raises ValueError."""
    return str(ipaddress.ip_network(text))


def _range(text: str) -> str:
    """The range of addresses in its usual form. Raises ValueError, also for those of metadata services."""
    found = ipaddress.ip_network(text)
    if any(is_within(found, ipaddress.ip_network(closed)) for closed in METADATA):
        raise ValueError("pods never reach metadata services and addresses of the link")
    return str(found)


Capability = Literal[
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
]
"""Those that the Pod Security level `baseline` admits."""


def _ports(text: str) -> str:
    """A port, or a range of ports. Raises ValueError."""
    first, _, last = text.partition("-")
    if not 1 <= int(first) <= int(last or first) <= MAX_PORT:
        raise ValueError(translate("Must be a port, or a range of ports, for example 30000-30100."))
    return text


PortRange = Annotated[str, Field(pattern=r"^[0-9]{1,5}(-[0-9]{1,5})?$"), AfterValidator(_ports)]


class ExternalPodsSettings(config.BackendConfig):
    """Which external pods Hekla schedules. All others are left alone.

    `namespaces`: by namespace, the slug of the tenant that owns the jobs of its pods. `queue`: for pods that name no
    queue of that tenant. `owner`: the account that owns these jobs. `scheduler_name`: the name in the pods' spec.
    `admits_groups`: whether to admit PodGroups without pods too, for operators that create pods only then; do not use
    it if Volcano admits them. `shows_queues`: whether to display all queues of the cluster there as Volcano's Queues,
    with their usage, to everyone who may read Queues; do not use it if Volcano runs there.
    """

    words: ClassVar[config.FieldWords] = config_words.EXTERNAL_PODS

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
    """Access to ports of jobs from outside the cluster. Everyone who reaches the proxy reaches these ports.

    `domain`: the parent domain of one host name per port; all these names must resolve to the proxy. `class_name`: the
    ingress class of the proxy. `namespace`: the namespace of the proxy. `tls`: the proxy serves these hosts by HTTPS.
    """

    words: ClassVar[config.FieldWords] = config_words.INGRESS

    domain: Annotated[str, Field(pattern=_DOMAIN, max_length=200)]
    class_name: Annotated[str, Field(pattern=_NAME)]
    namespace: Annotated[str, Field(pattern=_NAME)]
    tls: bool = False


def _server(address: str) -> str:
    """The address of a server. Raises ValueError, also for metadata services."""
    parts = urlsplit(address)
    is_more = "@" in parts.netloc or parts.query or parts.fragment  # a password would be visible
    if parts.scheme not in ("http", "https") or not parts.hostname or is_more:
        raise ValueError(translate("Must be the address of a server, for example http://prometheus.monitoring:9090."))
    try:
        found = ipaddress.ip_network(parts.hostname)
    except ValueError:
        return address  # a name
    if any(is_within(found, ipaddress.ip_network(closed)) for closed in METADATA):
        raise ValueError(translate("Metadata services and addresses of the link are not used."))
    return address


class PrometheusConfig(config.BackendConfig):
    """The Prometheus that measures the nodes, with the metrics of its node exporter, and the pods, with those of the
    kubelets and of NVIDIA's exporter. A token for it is stored encrypted, apart from this configuration.

    `node_label`: the label of these metrics whose value is the name of a node; a port after the name is ignored.
    `gpu_node_label`: the same for the metrics of NVIDIA's exporter.
    """

    words: ClassVar[config.FieldWords] = config_words.PROMETHEUS

    address: Annotated[str, Field(max_length=500), AfterValidator(_server)]
    node_label: Annotated[str, Field(pattern=r"^[a-zA-Z_][a-zA-Z0-9_]*$", max_length=100)] = "instance"
    gpu_node_label: Annotated[str, Field(pattern=r"^[a-zA-Z_][a-zA-Z0-9_]*$", max_length=100)] = "Hostname"


def _console(address: str) -> str:
    """The same as `_server`, or empty."""
    return _server(address) if address else ""


class ConsoleConfig(config.BackendConfig):
    """How pods reach the console, so that notebooks in sessions submit jobs. Pods may connect to this port only.

    `url`: its address for pods; empty: its public one. `port`: that of its servers, behind any Service or proxy with
    another one. `addresses`: the ranges of addresses of these servers; none: the console's own pods in this cluster.
    """

    words: ClassVar[config.FieldWords] = config_words.CONSOLE

    url: Annotated[str, Field(max_length=500), AfterValidator(_console)] = ""
    port: Annotated[int, Field(ge=1, le=MAX_PORT)] = 8000
    addresses: Annotated[tuple[Annotated[str, AfterValidator(_range)], ...], Field(max_length=20)] = ()


class KubernetesConfig(config.ClusterConfig):
    """The API server, and the pods and nodes that Hekla uses there.

    - `kubeconfig`: the name of a file in the folder `kubeconfigs` of the data folder, used if no credentials are stored
      for the cluster. Empty: this console runs in the cluster and uses its service account.
    - `context`: a context of that file; empty: its current one.
    - `namespace`: the namespace of our pods.
    - `node_labels`: only nodes with all of these labels are used.
    - `image`: the default image of pods.
    - `scheduler`: what places pods: Hekla's engine, or Volcano, to which whole jobs are then delegated.
    - `external_pods`: pods of others that Hekla's engine places too.
    - `namespaces`: `shared`: all pods are in one namespace; `tenant`: each tenant has its own, with `namespace` as its
      prefix.
    - `claims`: the PersistentVolumeClaims of a shared namespace that jobs of all tenants may mount. In its own
      namespace, a tenant may mount all.
    - `pull_secrets`: the Secrets of a shared namespace with which nodes may pull images for jobs of all tenants. In its
      own namespace, a tenant may name all.
    - `resource_claims`: the ResourceClaims and ResourceClaimTemplates of a shared namespace that jobs of all tenants
      may name. In its own namespace, a tenant may name all.
    - `runtime_classes`: the RuntimeClasses that jobs may name.
    - `host_ports`: the ports of nodes that pods may use, each as a port or a range (`30000-30100`).
    - `tenant_role`: the ClusterRole that Hekla grants itself in each tenant's namespace.
    - `priority_classes`: whether pods that Hekla places get a PriorityClass: the cluster's own that their job names, or
      one that Hekla creates.
    - `devices`: whether jobs may claim devices (dynamic resource allocation). The API group `resource.k8s.io` is read
      once a job does.
    - `storage`: whether Hekla places pods where the volumes of their claims can be reached, and binds claims that wait
      for their first consumer. Volumes, claims, StorageClasses and CSI objects are read once a job mounts a claim.
    - `ingress`: access to ports of jobs from outside the cluster; None: no access.
    - `pod_security`: the Pod Security level of pods, and of tenants' own namespaces; None: `restricted` in those,
      `baseline` in a shared namespace. `restricted` pods do not run as root, but as `run_as_user`.
    - `internet`: whether pods may open connections to public addresses.
    - `egress`: other address ranges to which they may, such as that of a file server. Pods of their job and the name
      servers of the cluster are always allowed, metadata services of clouds never.
    - `console`: how pods reach the console; None: not at all, and notebooks in sessions submit no jobs.
    - `egress_to_tenant`: whether they may to all pods of their tenant, and not only to those of their job.
    - `name_servers`: addresses of name servers other than the pods of the cluster's own; the default is that of
      NodeLocal DNSCache. Only the port of name servers is opened.
    - `prometheus`: measures the usage of nodes and pods; None: the cluster's own metrics API measures
      nodes, if there is one, and nothing measures pods.
    - `work_claim_size`, `work_claim_class`: size and StorageClass of the volume claim that is the working folder of a
      pod whose job keeps failed pods. No class: the default of the cluster.
    - `capabilities`: Linux capabilities that pods have, for programs such as an SSH server that runs as root.
    """

    words: ClassVar[config.FieldWords] = config_words.KUBERNETES
    main: ClassVar[tuple[str, ...]] = (
        *("kubeconfig", "context", "namespaces", "namespace", "image", "scheduler", "node_labels", "internet"),
    )

    kubeconfig: Annotated[str, Field(pattern=rf"^$|{_NAME}", max_length=63)] = ""
    context: Annotated[str, Field(max_length=253)] = ""
    namespace: Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")] = "hekla"
    node_labels: dict[str, str] = {}
    image: Annotated[str, Field(min_length=1, max_length=500)] = "python:3.11-slim"
    scheduler: Literal["hekla", "volcano"] = "hekla"
    external_pods: ExternalPodsSettings | None = None
    namespaces: Literal["shared", "tenant"] = "shared"
    claims: Annotated[tuple[Annotated[str, Field(pattern=_OBJECT, max_length=253)], ...], Field(max_length=1000)] = ()
    pull_secrets: Annotated[
        tuple[Annotated[str, Field(pattern=_OBJECT, max_length=253)], ...], Field(max_length=100)
    ] = ()
    resource_claims: Annotated[
        tuple[Annotated[str, Field(pattern=_OBJECT, max_length=253)], ...], Field(max_length=1000)
    ] = ()
    runtime_classes: Annotated[
        tuple[Annotated[str, Field(pattern=_OBJECT, max_length=253)], ...], Field(max_length=100)
    ] = ()
    host_ports: Annotated[tuple[PortRange, ...], Field(max_length=100)] = ()
    tenant_role: Annotated[str, Field(min_length=1, max_length=253)] = "hekla-tenants"
    priority_classes: bool = False
    devices: bool = False
    storage: bool = False
    ingress: IngressConfig | None = None
    pod_security: Literal["restricted", "baseline"] | None = None
    run_as_user: Annotated[int, Field(ge=1, le=2**31 - 1)] = 1000
    capabilities: tuple[Capability, ...] = ()
    internet: bool = True
    egress: Annotated[tuple[Annotated[str, AfterValidator(_range)], ...], Field(max_length=100)] = ()
    console: ConsoleConfig | None = None
    egress_to_tenant: bool = False
    name_servers: Annotated[tuple[Annotated[str, AfterValidator(_servers)], ...], Field(max_length=20)] = (
        "169.254.20.10/32",
    )

    prometheus: PrometheusConfig | None = None
    work_claim_size: Annotated[str, Field(pattern=r"^[1-9][0-9]{0,5}(Mi|Gi|Ti)$")] = "10Gi"
    work_claim_class: Annotated[str, Field(pattern=rf"^$|{_OBJECT}", max_length=253)] = ""

    @property
    def uses_hypernode_objects(self) -> bool:
        """Whether HyperNode objects count: if labels of nodes define no hypernodes, and Hekla places pods."""
        return not self.topology_labels and self.scheduler == "hekla"

    @property
    def security_level(self) -> str:
        """The Pod Security level of pods."""
        return self.pod_security or ("restricted" if self.namespaces == "tenant" else "baseline")

    @model_validator(mode="after")
    def _check_capabilities(self) -> Self:
        """The level `restricted` admits one capability only."""
        if self.security_level == "restricted" and set(self.capabilities) - {"NET_BIND_SERVICE"}:
            sentence = translate("The Pod Security level “restricted” allows only NET_BIND_SERVICE. Use “baseline”.")
            raise InconsistentFields([Problem("capabilities", sentence)])
        return self

    @model_validator(mode="after")
    def _check_host_ports(self) -> Self:
        """Every Pod Security level that Hekla gives to namespaces of tenants forbids ports of nodes."""
        if self.host_ports and self.namespaces == "tenant":
            sentence = translate("Pod Security forbids ports of nodes in namespaces of tenants.")
            raise InconsistentFields([Problem("host_ports", sentence)])
        return self

    @model_validator(mode="after")
    def _check_ingress(self) -> Self:
        """Ports are exposed only if Hekla creates the pods, in one namespace."""
        if self.ingress is not None and (self.namespaces != "shared" or self.scheduler != "hekla"):
            sentence = translate("Ports are exposed only where Hekla schedules pods, all in one namespace.")
            raise InconsistentFields([Problem("ingress", sentence)])
        return self

    @model_validator(mode="after")
    def _check_namespaces(self) -> Self:
        """Tenants have their own namespaces only if Hekla creates the pods; their names begin with `namespace`."""
        if self.namespaces == "shared":
            return self
        if self.scheduler != "hekla":
            sentence = translate("Volcano keeps the jobs of a cluster in one namespace. Use “shared”.")
            raise InconsistentFields([Problem("namespaces", sentence)])
        if len(self.namespace) > MAX_PREFIX:
            sentence = translate("At most {most} characters, because tenant names are appended.", most=MAX_PREFIX)
            raise InconsistentFields([Problem("namespace", sentence)])
        return self
