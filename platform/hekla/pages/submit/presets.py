"""The initial jobs of the submission form, one for each kind and framework. Each runs without changes.

The programs of most frameworks also run if the framework is not installed, and print that it is missing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.forms import Field
from django.utils.translation import gettext_lazy as _

from hekla.domain.job_kinds import SESSION
from hekla.domain.policies import LifecycleAction
from hekla.pages.job_forms import policy_fields
from hekla.pages.job_forms.forms import JobForm, TaskForm
from hekla.pages.job_forms.passthrough_fields import with_our_ends
from hekla.pages.job_forms.submission_form import InitialValues, Values

_SMALL = {"cpu": "500m", "memory": "512Mi"}
_TRAIN = _SMALL | {"command": "python train.py"}
_HELLO = 'python -c "print(1 + 1)"'
_SWEEPING, _SWEPT = "python -c \"print('learning rate', {{lr}})\"", "lr = 0.1, 0.01, 0.001"
_FOUR_HOURS = 4 * 3600
_TENSORFLOW = """\
import json, os
cluster = json.loads(os.environ["TF_CONFIG"])
print("I am", cluster["task"], "of", cluster["cluster"])
try:
    import tensorflow
except ImportError:
    print("TensorFlow is not in this environment; nothing is trained.")
else:
    print("TensorFlow", tensorflow.__version__, "- put your training here.")
"""
_TORCH = """\
import os
settings = {name: os.environ.get(name) for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "PET_RDZV_ENDPOINT")}
print("settings:", settings)
try:
    import torch
    import torch.distributed as world
except ImportError:
    print("PyTorch is not in this environment; nothing is trained.")
else:
    world.init_process_group("gloo")
    one = torch.ones(1)
    world.all_reduce(one)
    print("processes:", int(one.item()))
    world.destroy_process_group()
"""
_TORCHRUN = "sh -c 'if command -v torchrun; then exec torchrun train.py; else exec python train.py; fi'"
_MPI = """\
from mpi4py import MPI
world = MPI.COMM_WORLD
print("rank", world.Get_rank(), "of", world.Get_size(), "sees the sum", world.allreduce(1))
"""
_RAY = """\
import ray
ray.init()
print(sum(ray.get([ray.remote(lambda n: n * n).remote(n) for n in range(10)])))
"""
_JAX = """\
import os
coordinator = os.environ["COORDINATOR_ADDRESS"] + ":" + os.environ["COORDINATOR_PORT"]
processes, number = int(os.environ["NUM_PROCESSES"]), int(os.environ["PROCESS_ID"])
print("process", number, "of", processes, "connects to", coordinator)
try:
    import jax
except ImportError:
    print("JAX is not in this environment; nothing is computed.")
else:
    jax.distributed.initialize(coordinator, processes, number)
    print(jax.devices())
"""
_MXNET = """\
import os
print("role", os.environ["DMLC_ROLE"], "connects to", os.environ["DMLC_PS_ROOT_URI"])
try:
    import mxnet  # in a scheduler and a server this import returns when the workers are done
except ImportError:
    print("MXNet is not in this environment; nothing is trained.")
else:
    store = mxnet.kv.create("dist_sync")
    print("worker", store.rank, "of", store.num_workers, "- put your training here.")
"""
_HOROVOD = """\
import horovod.torch as world
world.init()
print("rank", world.rank(), "of", world.size())
"""
_XGBOOST = """\
import os
settings = {name: os.environ.get(name) for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")}
print("settings:", settings)
try:
    import xgboost
except ImportError:
    print("XGBoost is not in this environment; nothing is trained.")
else:
    print("XGBoost", xgboost.__version__, "- put your training here.")
"""
_NOTEBOOK = """\
import os, sys
try:
    import jupyterlab
except ImportError:
    sys.exit("JupyterLab is not in this environment. Choose an environment or an image that has it.")
address = os.environ.get("HEKLA_POD_ADDRESS", "0.0.0.0")
options = ["--no-browser", "--ip", address, "--port", "8888", "--allow-root", "--ServerApp.allow_remote_access=True"]
os.execv(sys.executable, [sys.executable, "-m", "jupyterlab", *options])
"""
_BOARD = """\
import os, sys
try:
    import tensorboard
except ImportError:
    sys.exit("TensorBoard is not in this environment. Choose an environment or an image that has it.")
address = os.environ.get("HEKLA_POD_ADDRESS", "127.0.0.1")
options = ["--logdir", sys.argv[1], "--host", address, "--port", "6006"]
os.execv(sys.executable, [sys.executable, "-m", "tensorboard.main", *options])
"""
_COMPLETE_WITH_IT = {"on_completion": str(LifecycleAction.COMPLETE_JOB)}
_RESTART = dict.fromkeys(policy_fields.OF_JOB, str(LifecycleAction.RESTART_JOB))
"""For distributed training: if one replica is gone, the others wait for it forever, so all restart."""


@dataclass(frozen=True, slots=True)
class StartingForm:
    """The initial content of the form, with a name. `needs`: the programs that its environment must have, else its pods
    fail; `about`: what its pods do.
    """

    name: str
    title: Any
    first: InitialValues
    needs: str = ""
    about: Any = ""


def _job(name: str, title: Any, tasks: Sequence[dict[str, Any]], program: str = "", **job: Any) -> StartingForm:  # noqa: ANN401
    needs, about = job.pop("needs", ""), job.pop("about", "")
    programs = job.pop("files", {"train.py": program} if program else {})
    files = [{"name": file, "text": text} for file, text in programs.items()]
    return StartingForm(name, title, InitialValues(job, tasks, files), needs, about)


KINDS = (
    _job(
        "single",
        _("Single process"),
        [_SMALL | {"name": "main", "command": _HELLO, "cpu": "1"}],
        shape="single",
        about=_("One command in one pod."),
    ),
    _job(
        "distributed",
        _("Distributed training"),
        [_SMALL | {"name": "worker", "replicas": 2, "command": "sh -c 'echo I am worker $JOB_COMPLETION_INDEX'"}],
        shape="distributed",
        framework="indexed",
        **_RESTART,
        about=_("An array of pods. Each finds its number in JOB_COMPLETION_INDEX."),
    ),
    _job(
        "debugging",
        _("Debugging"),
        [_SMALL | {"name": "main", "command": "sleep infinity", "cpu": "1"}],
        shape="debugging",
        kind=SESSION,
        active_deadline_seconds=_FOUR_HOURS,
        max_retry=1,
        about=_("A pod that sleeps for at most four hours, so that you can open a shell in it."),
    ),
)
SWEEP = _job(
    "sweep",
    _("Parameter sweep"),
    [_SMALL | {"name": "main", "command": _SWEEPING, "cpu": "1"}],
    shape="sweep",
    about=_("One job for each combination of parameters, submitted together as a batch."),
)
NOTEBOOK = _job(
    "notebook",
    _("Notebook: JupyterLab"),
    [_SMALL | {"name": "main", "command": "python notebook.py", "memory": "1Gi", "ports": "notebook=8888"}],
    shape="debugging",
    kind=SESSION,
    active_deadline_seconds=_FOUR_HOURS,
    max_retry=1,
    needs="jupyterlab",
    about=_("JupyterLab for at most four hours. The page of the job has the link, its log the token."),
    files={"notebook.py": _NOTEBOOK},
)
BOARD = _job(
    "tensorboard",
    _("Curves: TensorBoard"),
    [_SMALL | {"name": "main", "command": "python board.py runs", "memory": "1Gi"}],
    shape="debugging",
    kind=SESSION,
    active_deadline_seconds=_FOUR_HOURS,
    max_retry=1,
    needs="tensorboard",
    about=_(
        "TensorBoard of the folder “runs” for at most four hours: mount a volume there. Tools opens its port 6006."
    ),
    files={"board.py": _BOARD},
)
FRAMEWORKS = (
    _job(
        "tensorflow",
        _("TensorFlow: parameter server and workers"),
        [_TRAIN | {"name": "ps"}, _TRAIN | {"name": "worker", "replicas": 2}],
        _TENSORFLOW,
        about=_("A parameter server and two workers, which find each other in TF_CONFIG."),
        framework="tensorflow",
        **_RESTART,
    ),
    _job(
        "pytorch",
        _("PyTorch: master and workers"),
        [_TRAIN | {"name": "master"}, _TRAIN | {"name": "worker"}],
        _TORCH,
        about=_("A master and a worker, which add up a number with torch.distributed."),
        framework="pytorch",
        **_RESTART,
    ),
    _job(
        "torchrun",
        _("PyTorch: torchrun"),
        [_SMALL | {"name": "worker", "replicas": 2, "command": _TORCHRUN}],
        _TORCH,
        framework="pytorch",
        rest={"plugins": {"env": [], "svc": [], "pytorch": ["--master=worker", "--nnodes=1:2"]}},
        about=_("One or two workers that torchrun brings together; the job goes on with one."),
    ),
    _job(
        "mpi",
        _("MPI: mpirun and ranks"),
        [
            _SMALL | {"name": "master", "command": "mpirun python train.py"} | _COMPLETE_WITH_IT,
            _SMALL | {"name": "worker", "replicas": 2},
        ],
        _MPI,
        about=_("mpirun in the master starts a rank in each worker."),
        framework="mpi",
        **_RESTART,
        needs="mpirun, mpi4py",
    ),
    _job(
        "mxnet",
        _("MXNet: scheduler, server and workers"),
        [_TRAIN | {"name": "scheduler"}, _TRAIN | {"name": "server"}, _TRAIN | {"name": "worker", "replicas": 2}],
        _MXNET,
        about=_("A scheduler, a server and two workers with their DMLC roles."),
        framework="mxnet",
        **_RESTART,
    ),
    _job(
        "ray",
        _("Ray: head, workers and driver"),
        [
            _SMALL | {"name": "head", "memory": "1Gi"},
            _SMALL | {"name": "worker", "replicas": 2, "memory": "1Gi"},
            _TRAIN | {"name": "driver", "depends_on": "head"} | _COMPLETE_WITH_IT,
        ],
        _RAY,
        about=_("A Ray cluster for the time of the job: a head, two workers, and a driver that ends it."),
        framework="ray",
        needs="ray",
    ),
    _job(
        "jax",
        _("JAX: peer processes"),
        [_TRAIN | {"name": "worker", "replicas": 2}],
        _JAX,
        about=_("Two equal processes that connect to a coordinator."),
        framework="jax",
        **_RESTART,
    ),
    _job(
        "horovod",
        _("Horovod: ranks over MPI"),
        [
            _SMALL | {"name": "master", "command": "mpirun python train.py"} | _COMPLETE_WITH_IT,
            _SMALL | {"name": "worker", "replicas": 2},
        ],
        _HOROVOD,
        about=_("Horovod with PyTorch: mpirun in the master starts a rank in each worker."),
        framework="horovod",
        **_RESTART,
        needs="mpirun, horovod",
    ),
    _job(
        "xgboost",
        _("XGBoost: master and workers"),
        [_TRAIN | {"name": "master"}, _TRAIN | {"name": "worker", "replicas": 2}],
        _XGBOOST,
        about=_("A master and two workers with the address of the master and their ranks."),
        framework="xgboost",
        **_RESTART,
    ),
)
INCLUDED = (*KINDS, SWEEP, NOTEBOOK, BOARD, *FRAMEWORKS)
"""All of them, as the gallery shows them."""


def beginning(name: str) -> StartingForm:
    """The initial job of that name; a single process if there is none."""
    return next((each for each in INCLUDED if each.name == name), KINDS[0])


def swept_by(first: InitialValues) -> str:
    """The sweep parameters for the initial command of a sweep; empty for any other command."""
    return _SWEPT if [task.get("command") for task in first.tasks] == [_SWEEPING] else ""


def turned(first: InitialValues, kind: str) -> InitialValues:
    """The same form for another kind of job.

    Values that are still the defaults of the old kind become the defaults of the new one. Typed values stay.
    """
    old, new = (beginning(name).first for name in (first.job.get("shape") or "distributed", kind))
    job = _turned(first.job, old.job, new.job, JobForm.base_fields) | {"shape": kind}
    if len(first.tasks) != 1:
        return replace(first, job=job)
    return replace(first, job=job, tasks=[_turned(first.tasks[0], old.tasks[0], new.tasks[0], TaskForm.base_fields)])


def _turned(typed: Values, old: Values, new: Values, fields: Mapping[str, Field]) -> Values:
    usual = {name: (old.get(name, fields[name].initial), new.get(name, fields[name].initial)) for name in typed}
    return {name: usual[name][1] if is_alike(value, usual[name][0]) else value for name, value in typed.items()}


def is_alike(one: object, other: object) -> bool:
    """Whether two values of a field have the same text."""
    return _text(one) == _text(other)


def _text(value: object) -> str:
    return with_our_ends(str(value or ""))
