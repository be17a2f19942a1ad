"""`spark`: a driver that starts a standalone master, and executors that join it.

Executors without a command start a worker for one executor. All tasks get the address of the master in the variables
that Spark reads. On the local cluster each listens at its pod's address.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hekla.domain.frameworks.base import (
    Framework,
    Option,
    Options,
    PodContext,
    PodSettings,
    is_loopback,
    missing_roles,
    several_leaders,
    shell,
)

if TYPE_CHECKING:
    from hekla.domain.task_spec import TaskSpec

_PROGRAMS = "${SPARK_HOME:+$SPARK_HOME/bin/}"
_CLASS = f"{_PROGRAMS}spark-class org.apache.spark.deploy"


def _settings(context: PodContext, options: Options) -> PodSettings:
    host, port = context.addresses[str(options["driver"]), 0], options["port"]
    own = {"SPARK_LOCAL_IP": context.own_address} if is_loopback(context.own_address) else {}
    variables = {"SPARK_MASTER_HOST": host, "SPARK_MASTER_PORT": str(port), "MASTER": f"spark://{host}:{port}"}
    return PodSettings(env={**variables, **own})


def _commands(options: Options) -> Mapping[str, tuple[str, ...]]:
    return {str(options["executor"]): shell(f"exec {_CLASS}.worker.Worker --webui-port 0 $MASTER")}


def start_driver(arguments: str) -> tuple[str, ...]:
    """The command that starts the master and submits a program to it. `arguments`: of spark-submit, for the shell."""
    master = f"{_CLASS}.master.Master --host $SPARK_MASTER_HOST --port $SPARK_MASTER_PORT"
    submit = f"exec {_PROGRAMS}spark-submit --master $MASTER --conf spark.driver.host=$SPARK_MASTER_HOST"
    return shell(f"{master} & {submit} {arguments}")


def _problems(tasks: Sequence["TaskSpec"], options: Options) -> list[str]:
    return missing_roles(["driver"], tasks, options) or several_leaders("driver", tasks, options)


SPARK = Framework(
    "spark",
    "Lets the executors of Spark join the driver, and sets MASTER.",
    _settings,
    options=(Option("driver", "driver"), Option("executor", "executor"), Option("port", 7077)),
    implies=("svc",),
    problems=_problems,
    commands=_commands,
)
