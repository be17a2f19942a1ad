"""`svc`: the pods of a job get one another's addresses.

Each task's addresses are in a variable, in a file with one per line, and in host names `<job>-<task>-<index>`, with and
without the suffix `.<job>`. Addresses that are DNS names already are left to the cluster's DNS. By default, a cluster
with network policies lets only pods of the job connect to them.
"""

from ipaddress import ip_address

from hekla.domain.frameworks.base import Framework, Option, Options, PodContext, PodSettings, fixed_at_start
from hekla.domain.translation import gettext_noop

FOLDER = "etc/volcano"


def _settings(context: PodContext, options: Options) -> PodSettings:
    env, files = {}, {}
    for task in context.spec.tasks:
        addresses = context.addresses_of(task)
        name = task.name.upper().replace("-", "_")
        env[f"VC_{name}_HOSTS"] = ",".join(addresses)
        env[f"VC_{name}_NUM"] = str(task.replicas)
        files[f"{FOLDER}/{task.name}.host"] = "".join(f"{address}\n" for address in addresses)
    return PodSettings(
        env=env if options["inject-hosts-env"] else {},
        files=files,
        hosts=_names(context),
        mounts={f"/{FOLDER}": FOLDER},
        is_closed=not options["disable-network-policy"],
    )


def _names(context: PodContext) -> dict[str, str]:
    job = context.spec.name
    names: dict[str, str] = {}
    for (task, index), address in context.addresses.items():
        if _is_ip(address):
            pod = f"{job}-{task}-{index}"
            names |= {pod: address, f"{pod}.{job}": address}
    return names


def _is_ip(address: str) -> bool:
    try:
        ip_address(address)
    except ValueError:
        return False
    return True


SVC = Framework(
    "svc",
    "Gives the pods of a job one another's addresses.",
    _settings,
    options=(
        Option("publish-not-ready-addresses", False, unheeded=gettext_noop("addresses are known before pods start.")),
        Option("disable-network-policy", False),
        Option("inject-hosts-env", True),
    ),
    scaling=fixed_at_start(gettext_noop("the list of addresses (VC_…_HOSTS, etc/volcano)")),
)
