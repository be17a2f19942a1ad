"""Whose pods are next, and how much each job and queue gets."""

from django.utils.translation import gettext_lazy as _

from hekla.apps.demonstrations.scenes import DemoJob, Demonstration, Measure, Outcome, Topic, Without
from hekla.apps.demonstrations.stages import DEADLINE, HIERARCHY, RESERVATION, SHARES

DEMONSTRATIONS = (
    Demonstration(
        name="shares",
        topic=Topic.ORDER,
        title=_("Equal dominant shares of CPU and memory"),
        story=(
            _("A node has 9 CPUs and 18 GiB. Pods of one job need 1 CPU and 4 GiB, those of another 3 CPUs and 1 GiB."),
            _(
                "The plugin drf gives the next pod to the job with the smaller dominant share, the larger of its "
                "shares of CPU and memory."
            ),
            _("Without it, the older job takes all that it can use, and the other one gets what is left."),
        ),
        watch=_("the squares: three pods of the first job and two of the second run, two thirds of the node each."),
        stage=SHARES,
        acts=(
            DemoJob("memory", {"worker": 4}, seconds=8, least=1, resources={"cpu": "1", "memory": "4Gi"}),
            DemoJob("cpu", {"worker": 3}, seconds=8, least=1, resources={"cpu": "3", "memory": "1Gi"}),
        ),
        measure=Measure.SHARE,
        outcome=Outcome(67),
        without=Without("drf", Outcome(33)),
    ),
    Demonstration(
        name="hierarchy",
        topic=Topic.ORDER,
        title=_("Shares of a hierarchy of queues (HDRF)"),
        story=(
            _(
                "Research has two queues, production one with twice the weight of research. Each queue has a job of up "
                "to four workers. There are six GPUs."
            ),
            _("The plugin drf with enableHierarchy divides them between research and production first: two to four."),
            _("The plugin proportion does not know this hierarchy: each of the three queues gets two."),
        ),
        watch=_("the squares of job 3, production: four with the hierarchy, two without."),
        stage=HIERARCHY,
        acts=tuple(
            DemoJob(name, {"worker": 4}, seconds=8, least=1, queue=queue)
            for queue, name in enumerate(("vision", "speech", "production"))
        ),
        measure=Measure.HELD,
        outcome=Outcome(4),
        without=Without("drf", Outcome(2)),
    ),
    Demonstration(
        name="deadline",
        topic=Topic.ORDER,
        title=_("A job that may wait only so long"),
        story=(
            _(
                "Three jobs of four GPUs are submitted together. There are four GPUs. The third job may wait at most "
                "30 seconds (sla-waiting-time)."
            ),
            _("The plugin sla orders jobs by deadline, so the third job runs first."),
            _("Without it, the jobs run in the order of their submission."),
        ),
        watch=_("the bars of the jobs: the third runs first."),
        stage=DEADLINE,
        acts=(
            DemoJob("first", {"worker": 4}, seconds=6),
            DemoJob("second", {"worker": 4}, seconds=6),
            DemoJob("urgent", {"worker": 4}, seconds=6, annotations={"sla-waiting-time": "30s"}),
        ),
        measure=Measure.RANK,
        outcome=Outcome(1),
        without=Without("sla", Outcome(3)),
    ),
    Demonstration(
        name="reservation",
        topic=Topic.ORDER,
        title=_("Nodes reserved for a large job"),
        story=(
            _("Two small jobs run on two GPUs. A large job that needs both waits, and then two more small jobs."),
            _("The plugin reservation keeps the first free GPU for the large job, until the second is free too."),
            _("Without it, each free GPU goes to a small job, and the large job starts last."),
        ),
        watch=_("one square that stays free for a few seconds. Then job 3 fills both."),
        stage=RESERVATION,
        acts=(
            DemoJob("early-a", {"worker": 1}, seconds=5),
            DemoJob("early-b", {"worker": 1}, seconds=9),
            DemoJob("large", {"worker": 2}, seconds=5),
            DemoJob("late-a", {"worker": 1}, seconds=9),
            DemoJob("late-b", {"worker": 1}, seconds=9),
        ),
        measure=Measure.RANK,
        subject=3,
        after_first=True,
        outcome=Outcome(3),
        without=Without("reservation", Outcome(5)),
    ),
)
