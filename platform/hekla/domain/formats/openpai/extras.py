"""`extras`: settings of OpenPAI's scheduler and plugins. Most are specific to that platform, and are reported."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from hekla.domain.formats.fields import Fields
from hekla.domain.formats.openpai.prerequisites import callbacks, texts
from hekla.domain.translation import gettext_noop, translate
from hekla.domain.validation import not_one_of

PLUGINS = "com.microsoft.pai.runtimeplugin"
PRIORITIES = {"crit": 120, "prod": 100, "test": 10, "oppo": -1}

_EVENTS = {"containerStarts": True, "containerEnds": False}
_IGNORED_PLUGINS = {
    "ssh": gettext_noop(
        "pods do not run sshd. The job plugin ssh provides keys, and mpirun needs no ssh with the plugin mpi."
    ),
    "tensorboard": gettext_noop("pods do not run TensorBoard."),
    "teamwise_storage": gettext_noop("OpenPAI storage is not mounted."),
}
_OTHER = gettext_noop("it belongs to the OpenPAI runtime.")
_STORAGE = gettext_noop("OpenPAI storage is not mounted.")
_NOTICE = gettext_noop("job changes are not mailed. The job's page shows them live.")
_SKU = gettext_noop("resourcePerInstance sets the resources of a pod.")


@dataclass(slots=True)
class Extras:
    """The extras with an effect here. `commands`: those of the plugin `cmd`, each for some roles (none: for all)."""

    is_gang: bool = True
    priority: int | None = None
    commands: list[tuple[tuple[str, ...], list[str], list[str]]] = field(default_factory=list)

    def before(self, role: str) -> list[str]:
        """The commands before those of a task role."""
        return [line for roles, lines, _ in self.commands if not roles or role in roles for line in lines]

    def after(self, role: str) -> list[str]:
        """The commands after those of a task role."""
        return [line for roles, _, lines in self.commands if not roles or role in roles for line in lines]


def read(extras: Fields) -> Extras:
    """The extras that have an effect; the others are reported."""
    found = Extras()
    extras.ignore("submitFrom")
    gang = extras.take("gangAllocation")
    if gang not in (None, True, False):
        extras.findings.problem(extras.at("gangAllocation"), translate("Must be true or false."))
    found.is_gang = gang is not False
    found.priority = _priority(extras.fields("hivedScheduler"))
    found.commands = list(_plugins(extras))
    if extras.sequence("storages"):
        extras.findings.not_honoured(extras.at("storages"), translate(_STORAGE))
    if any(value is True for value in extras.mapping("jobStatusChangeNotification").values()):
        extras.findings.not_honoured(extras.at("jobStatusChangeNotification"), translate(_NOTICE))
    extras.close()
    return found


def _priority(hived: Fields) -> int | None:
    name = hived.text("jobPriorityClass")
    if name and name not in PRIORITIES:
        hived.findings.problem(hived.at("jobPriorityClass"), not_one_of(name, tuple(PRIORITIES)))
    if "taskRoles" in hived:
        hived.findings.not_honoured(hived.at("taskRoles"), translate(_SKU))
    hived.ignore("taskRoles")
    hived.close()
    return PRIORITIES.get(name)


def _plugins(extras: Fields) -> Iterator[tuple[tuple[str, ...], list[str], list[str]]]:
    for plugin in extras.list_of_fields(PLUGINS):
        name = plugin.text("plugin")
        if name == "cmd":
            parameters = plugin.fields("parameters")
            before, after = callbacks(parameters, _EVENTS)
            before, after = before + texts(parameters, "preCommands"), after + texts(parameters, "postCommands")
            plugin.ignore("failurePolicy")
            yield tuple(texts(plugin, "taskRoles")), before, after
            parameters.close()
            plugin.close()
        elif name != "ssh" or _wants_ssh(plugin):
            extras.findings.not_honoured(f"{plugin.path} ({name})", translate(_IGNORED_PLUGINS.get(name, _OTHER)))


def _wants_ssh(plugin: Fields) -> bool:
    """False if it is only configured to be off, as OpenPAI's own form writes it."""
    parameters = plugin.mapping("parameters")
    return any(parameters.get(name) not in (None, False, [], {}, "") for name in ("jobssh", "userssh", "sshbarrier"))


def priority_class(priority: int) -> str | None:
    """The class with exactly this priority; None if there is none."""
    return next((name for name, number in PRIORITIES.items() if number == priority), None)
