"""`xgboost`: ranks as torch.distributed has them, and the workers' addresses."""

from hekla.domain.frameworks.base import Framework, Option, Options, Place, PodSettings
from hekla.domain.frameworks.pytorch import PYTORCH

_SHARED = ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK")


def _settings(place: Place, options: Options) -> PodSettings:
    env = PYTORCH.settings(place, options).env
    workers = place.find(options["worker"])
    if not env or workers is None:
        return PodSettings(env={name: env[name] for name in _SHARED if env})
    told = {"WORKER_PORT": str(options["port"]), "WORKER_ADDRS": ",".join(place.addresses_of(workers))}
    return PodSettings(env={name: env[name] for name in _SHARED} | told)


XGBOOST = Framework(
    "xgboost",
    "Sets MASTER_ADDR, MASTER_PORT, WORLD_SIZE, RANK, WORKER_ADDRS and WORKER_PORT for XGBoost.",
    _settings,
    options=(Option("master", "master"), Option("worker", "worker"), Option("port", 9999)),
    implies=("svc",),
    problems=PYTORCH.problems,
)
