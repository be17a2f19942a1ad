"""`env`: a pod learns its index in its task."""

from hekla.domain.frameworks.base import Framework, Options, PodContext, PodSettings


def _settings(context: PodContext, _options: Options) -> PodSettings:
    index = str(context.index)
    return PodSettings(env={"VC_TASK_INDEX": index, "VK_TASK_INDEX": index})


ENV = Framework("env", "Tells every pod its number, as VC_TASK_INDEX.", _settings, tells_addresses=False)
