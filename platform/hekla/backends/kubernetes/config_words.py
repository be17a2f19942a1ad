"""The labels of the settings of a Kubernetes cluster, for the form; `config` says more about each."""

from hekla.backends.config import ClusterConfig, FieldWords
from hekla.domain.translation import gettext_noop

EXTERNAL_PODS: FieldWords = {
    "namespaces": (
        gettext_noop("Namespaces"),
        gettext_noop("Whose pods Hekla schedules, and the tenant of their jobs: namespace=tenant, one per line."),
    ),
    "queue": (gettext_noop("Queue"), gettext_noop("For pods that name no queue of their tenant.")),
    "owner": (gettext_noop("Owner"), gettext_noop("The user name of the person who owns these jobs.")),
    "scheduler_name": (gettext_noop("Scheduler name"), gettext_noop("The name that these pods request.")),
    "admits_groups": (
        gettext_noop("Admit PodGroups without pods"),
        gettext_noop("For operators that create pods only then. Not if Volcano admits them."),
    ),
    "shows_queues": (
        gettext_noop("Display queues in the cluster"),
        gettext_noop("As Volcano's Queues, to everyone who may read them. Not if Volcano runs there."),
    ),
}
CONSOLE: FieldWords = {
    "url": (
        gettext_noop("Address for pods"),
        gettext_noop("Empty: the public one. For example: http://hekla.hekla-system."),
    ),
    "port": (gettext_noop("Port of its servers"), gettext_noop("Behind a Service or proxy it may be another one.")),
    "addresses": (
        gettext_noop("Addresses of its servers"),
        gettext_noop("One range per line. None: its own pods, if it runs in this cluster."),
    ),
}
INGRESS: FieldWords = {
    "domain": (
        gettext_noop("Domain"),
        gettext_noop("The parent of one host name per port; all lead to the proxy."),
    ),
    "class_name": (gettext_noop("Ingress class"), ""),
    "namespace": (gettext_noop("Namespace of the proxy"), ""),
    "tls": (gettext_noop("HTTPS"), gettext_noop("The proxy serves these hosts by HTTPS.")),
}
PROMETHEUS: FieldWords = {
    "address": (gettext_noop("Address"), gettext_noop("For example: http://prometheus.monitoring:9090.")),
    "node_label": (gettext_noop("Label with the node name"), ""),
    "gpu_node_label": (gettext_noop("Label with the node name, of GPUs"), gettext_noop("Of NVIDIA's exporter.")),
}
KUBERNETES: FieldWords = {
    **ClusterConfig.words,
    "kubeconfig": (
        gettext_noop("Kubeconfig file"),
        gettext_noop("The name of a file in the folder kubeconfigs of the data folder, if none is entered above."),
    ),
    "context": (gettext_noop("Context"), gettext_noop("Of that file. Empty: its current context.")),
    "namespace": (gettext_noop("Namespace"), gettext_noop("Of the pods of all tenants, or the prefix of theirs.")),
    "node_labels": (
        gettext_noop("Only nodes with these labels"),
        gettext_noop("One name=value per line. Empty: all nodes."),
    ),
    "image": (gettext_noop("Default image"), gettext_noop("Of pods that name none.")),
    "scheduler": (gettext_noop("Scheduler"), gettext_noop("hekla places the pods itself. volcano gets whole jobs.")),
    "external_pods": (gettext_noop("External pods"), gettext_noop("Pods that others create and Hekla schedules.")),
    "namespaces": (
        gettext_noop("Namespaces of tenants"),
        gettext_noop("shared: all tenants in one namespace. tenant: one for each, which Hekla creates."),
    ),
    "claims": (
        gettext_noop("Volume claims"),
        gettext_noop("That jobs of all tenants may mount in a shared namespace. One per line."),
    ),
    "pull_secrets": (
        gettext_noop("Image pull secrets"),
        gettext_noop("That jobs of all tenants may name in a shared namespace. One per line."),
    ),
    "resource_claims": (
        gettext_noop("Resource claims"),
        gettext_noop("And their templates, that jobs of all tenants may name in a shared namespace. One per line."),
    ),
    "runtime_classes": (gettext_noop("Runtime classes"), gettext_noop("That jobs may name. One per line.")),
    "host_ports": (
        gettext_noop("Node ports"),
        gettext_noop("That pods may use, one range per line: 30000-30100."),
    ),
    "tenant_role": (
        gettext_noop("Role in tenants' namespaces"),
        gettext_noop("The ClusterRole that Hekla grants itself there."),
    ),
    "priority_classes": (gettext_noop("Use priority classes of the cluster"), ""),
    "devices": (gettext_noop("Device claims"), gettext_noop("Jobs may claim devices (dynamic resource allocation).")),
    "storage": (
        gettext_noop("Place pods by their volumes"),
        gettext_noop("And bind claims that wait for their first consumer."),
    ),
    "ingress": (gettext_noop("Access from outside"), gettext_noop("To ports of jobs, through an ingress.")),
    "pod_security": (
        gettext_noop("Pod Security level"),
        gettext_noop("By default restricted in namespaces of tenants, and baseline in a shared one."),
    ),
    "run_as_user": (gettext_noop("User id of restricted pods"), ""),
    "capabilities": (gettext_noop("Linux capabilities of pods"), ""),
    "internet": (gettext_noop("Internet access"), gettext_noop("Pods may open connections to public addresses.")),
    "egress": (
        gettext_noop("Other reachable addresses"),
        gettext_noop("One range per line. For example: 10.0.0.0/24."),
    ),
    "console": (
        gettext_noop("The console for pods"),
        gettext_noop("So that notebooks in sessions submit jobs. Pods may connect to its port only."),
    ),
    "egress_to_tenant": (
        gettext_noop("Connections inside a tenant"),
        gettext_noop("Pods reach all pods of their tenant, not only those of their job."),
    ),
    "name_servers": (gettext_noop("Name servers"), gettext_noop("Beside the cluster's own. One range per line.")),
    "prometheus": (gettext_noop("Prometheus"), gettext_noop("Measures the usage of nodes and pods.")),
    "work_claim_size": (
        gettext_noop("Size of working folders that are kept"),
        gettext_noop("Of the volume claims of pods whose job keeps failed pods, for example 10Gi."),
    ),
    "work_claim_class": (
        gettext_noop("Storage class of these claims"),
        gettext_noop("Empty: the default of the cluster."),
    ),
}
