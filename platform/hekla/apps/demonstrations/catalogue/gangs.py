"""Gangs and elastic jobs."""

from django.utils.translation import gettext_lazy as _

from hekla.apps.demonstrations.scenes import DemoJob, Demonstration, Measure, Outcome, Topic, Without
from hekla.apps.demonstrations.stages import ELASTIC, GANGS

_TEN = {"worker": 10}
_RULE = {"max_replicas": 3, "gpu_utilization": 70}

DEMONSTRATIONS = (
    Demonstration(
        name="gangs",
        topic=Topic.GANGS,
        title=_("Two gangs, room for one"),
        story=(
            _(
                "Two jobs of four workers are submitted together. Each worker needs one GPU. The simulated "
                "nodes have four."
            ),
            _("One job gets all four GPUs and runs. The other gets none, waits, and runs when the first has finished."),
            _("If pods were scheduled one by one, each job could get two GPUs and wait for the others forever."),
        ),
        watch=_("the squares. All squares of one job fill together while the other job stays empty. Then they swap."),
        stage=GANGS,
        acts=(DemoJob("first", {"worker": 4}, seconds=10), DemoJob("second", {"worker": 4}, seconds=10)),
        measure=Measure.ENDED,
        outcome=Outcome(1),
    ),
    Demonstration(
        name="elastic-at-once",
        topic=Topic.GANGS,
        title=_("Two elastic jobs at the same time"),
        story=(
            _(
                "There are ten GPUs. Two jobs are submitted together to one queue. Each needs five workers and "
                "can use ten."
            ),
            _("Each job gets the five workers that it needs to start. No job takes ten while the other waits."),
            _("The elastic workers, those above the minimum, run as soon as GPUs are free."),
        ),
        watch=_("five squares of each job fill first, then the other five. No pod is evicted."),
        stage=ELASTIC,
        acts=tuple(DemoJob(name, _TEN, seconds=12, least=5) for name in ("first", "second")),
        measure=Measure.ENDED,
        outcome=Outcome(0),
    ),
    Demonstration(
        name="elastic-same-queue",
        topic=Topic.GANGS,
        title=_("Preemption of an elastic job in its queue"),
        story=(
            _("A job with a minimum of five workers runs ten of them on all ten GPUs."),
            _("Then a second job is submitted to the same queue. Five elastic workers are evicted for it."),
            _(
                "No GPU is idle, and no job waits for another that has more than its minimum. Evicted workers "
                "run again later."
            ),
        ),
        watch=_("five evictions of the first job. Its other five workers continue, and the second job starts."),
        stage=ELASTIC,
        acts=(
            DemoJob("first", _TEN, seconds=14, least=5),
            DemoJob("second", _TEN, seconds=14, least=5, later=True),
        ),
        measure=Measure.ENDED,
        outcome=Outcome(0, evicted=(5, 0), action="preempt"),
        without=Without("preempt", Outcome(1)),
    ),
    Demonstration(
        name="elastic-other-queue",
        topic=Topic.GANGS,
        title=_("Reclaim of borrowed resources from an elastic job"),
        story=(
            _("A job of one queue runs ten workers on ten GPUs. Five of the GPUs are borrowed from an empty queue."),
            _("Then a job is submitted to that other queue. It reclaims its share: five elastic workers are evicted."),
            _("A queue can lend what it does not use without losing it."),
        ),
        watch=_(
            "five evictions in the first queue. Five workers continue there, and the job of the other queue starts."
        ),
        stage=ELASTIC,
        acts=(
            DemoJob("first", _TEN, seconds=14, least=5),
            DemoJob("second", _TEN, seconds=14, queue=1, least=5, later=True),
        ),
        measure=Measure.ENDED,
        outcome=Outcome(0, evicted=(5, 0), action="reclaim"),
        without=Without("reclaim", Outcome(1)),
    ),
    Demonstration(
        name="autoscaling",
        topic=Topic.GANGS,
        title=_("More workers while GPUs are busy"),
        story=(
            _(
                "Two workers share work that keeps both of their GPUs 91 % busy. Their task has a target of 70 % "
                "and a maximum of three replicas."
            ),
            _("When the workers have run for a minute, a third one is added. Then each of their GPUs is 61 % busy."),
            _("The job takes idle GPUs only when its work needs them. This demonstration takes three minutes."),
        ),
        watch=_("a third square after about a minute. The history of the job says why it grew."),
        stage=GANGS,
        acts=(DemoJob("busy", {"worker": 2}, seconds=100, busy_gpus=1.82, task_fields={"autoscaling": _RULE}),),
        measure=Measure.HELD,
        outcome=Outcome(3),
        without=Without("autoscaling", Outcome(2)),
        inputs=_(
            "A local cluster measures NVIDIA's GPUs. On Kubernetes, their utilization comes from Prometheus with "
            "NVIDIA's exporter."
        ),
    ),
)
