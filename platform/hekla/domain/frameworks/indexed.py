"""`indexed`: a pod learns its index in its task by the name that it has in indexed Jobs of Kubernetes."""

from hekla.domain.frameworks.base import Framework, Options, PodContext, PodSettings


def _settings(context: PodContext, _options: Options) -> PodSettings:
    return PodSettings(env={"JOB_COMPLETION_INDEX": str(context.index)})


INDEXED = Framework("indexed", "Tells every pod its number, as JOB_COMPLETION_INDEX.", _settings, tells_addresses=False)
