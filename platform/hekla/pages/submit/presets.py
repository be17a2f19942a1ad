"""The initial jobs of the submission form, one for each kind and framework. Each runs without changes.

The programs of most frameworks also run if the framework is not installed, and print that it is missing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.forms import Field
from django.utils.translation import gettext_lazy as _

from hekla.domain.jobspec import SESSION
from hekla.domain.policies import LifecycleAction, LifecycleEvent
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
_COMPLETE_WITH_LEADER = [{"events": [str(LifecycleEvent.TASK_COMPLETED)], "action": str(LifecycleAction.COMPLETE_JOB)}]


@dataclass(frozen=True, slots=True)
class StartingForm:
    """The initial content of the form, with a name. `needs`: the programs that its environment must have."""

    name: str
    title: Any
    first: InitialValues
    needs: str = ""


def _job(name: str, title: Any, tasks: Sequence[dict[str, Any]], program: str = "", **job: Any) -> StartingForm:  # noqa: ANN401
    needs = job.pop("needs", "")
    files = [{"name": "train.py", "text": program}] if program else []
    return StartingForm(name, title, InitialValues(job, tasks, files), needs)


KINDS = (
    _job("single", _("Single process"), [_SMALL | {"name": "main", "command": _HELLO, "cpu": "1"}], shape="single"),
    _job(
        "distributed",
        _("Distributed training"),
        [_SMALL | {"name": "worker", "replicas": 2, "command": "sh -c 'echo I am worker $JOB_COMPLETION_INDEX'"}],
        shape="distributed",
        framework="indexed",
        restart=True,
    ),
    _job(
        "debugging",
        _("Debugging"),
        [_SMALL | {"name": "main", "command": "sleep infinity", "cpu": "1"}],
        shape="debugging",
        kind=SESSION,
        active_deadline_seconds=_FOUR_HOURS,
        max_retry=1,
    ),
)
SWEEP = _job(
    "sweep",
    _("Parameter sweep"),
    [_SMALL | {"name": "main", "command": _SWEEPING, "cpu": "1"}],
    shape="sweep",
)
FRAMEWORKS = (
    _job(
        "tensorflow",
        _("TensorFlow: parameter server and workers"),
        [_TRAIN | {"name": "ps"}, _TRAIN | {"name": "worker", "replicas": 2}],
        _TENSORFLOW,
        framework="tensorflow",
        restart=True,
    ),
    _job(
        "pytorch",
        _("PyTorch: master and workers"),
        [_TRAIN | {"name": "master"}, _TRAIN | {"name": "worker"}],
        _TORCH,
        framework="pytorch",
        restart=True,
    ),
    _job(
        "torchrun",
        _("PyTorch: torchrun"),
        [_SMALL | {"name": "worker", "replicas": 2, "command": _TORCHRUN}],
        _TORCH,
        framework="pytorch",
        rest={"plugins": {"env": [], "svc": [], "pytorch": ["--master=worker", "--nnodes=1:2"]}},
    ),
    _job(
        "mpi",
        _("MPI: mpirun and ranks"),
        [
            _SMALL
            | {"name": "master", "command": "mpirun python train.py"}
            | {"rest": {"policies": _COMPLETE_WITH_LEADER}},
            _SMALL | {"name": "worker", "replicas": 2},
        ],
        _MPI,
        framework="mpi",
        restart=True,
        needs="mpirun, mpi4py",
    ),
    _job(
        "mxnet",
        _("MXNet: scheduler, server and workers"),
        [_TRAIN | {"name": "scheduler"}, _TRAIN | {"name": "server"}, _TRAIN | {"name": "worker", "replicas": 2}],
        _MXNET,
        framework="mxnet",
        restart=True,
    ),
    _job(
        "ray",
        _("Ray: head, workers and driver"),
        [
            _SMALL | {"name": "head", "memory": "1Gi"},
            _SMALL | {"name": "worker", "replicas": 2, "memory": "1Gi"},
            _TRAIN | {"name": "driver", "depends_on": "head", "rest": {"policies": _COMPLETE_WITH_LEADER}},
        ],
        _RAY,
        framework="ray",
        needs="ray",
    ),
    _job(
        "jax",
        _("JAX: peer processes"),
        [_TRAIN | {"name": "worker", "replicas": 2}],
        _JAX,
        framework="jax",
        restart=True,
    ),
)


def beginning(name: str) -> StartingForm:
    """The initial job of that name; a single process if there is none."""
    return next((each for each in (*KINDS, SWEEP, *FRAMEWORKS) if each.name == name), KINDS[0])


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
        return InitialValues(job, first.tasks, first.files)
    return InitialValues(job, [_turned(first.tasks[0], old.tasks[0], new.tasks[0], TaskForm.base_fields)], first.files)


def _turned(typed: Values, old: Values, new: Values, fields: Mapping[str, Field]) -> Values:
    usual = {name: (old.get(name, fields[name].initial), new.get(name, fields[name].initial)) for name in typed}
    return {name: usual[name][1] if is_alike(value, usual[name][0]) else value for name, value in typed.items()}


def is_alike(one: object, other: object) -> bool:
    """Whether two values of a field have the same text."""
    return _text(one) == _text(other)


def _text(value: object) -> str:
    return with_our_ends(str(value or ""))
