"""Endpoints of a job's pending reasons, its evictions, and its risk of reclaim."""

from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.v1.watching_serializers import ReceiptsSerializer, ReclaimRiskSerializer, RibbonSerializer
from hekla.api.views import ApiView, person, respond
from hekla.apps.job_history import receipts, ribbon
from hekla.apps.jobs import selectors
from hekla.lib import clock
from hekla.simulation import reclaim_risk


class JobWaitsView(ApiView):
    @extend_schema(responses=RibbonSerializer)
    def get(self, request: Request, uid: UUID) -> Response:
        """The pending reasons of a job over time, and the present one."""
        job = selectors.get(uid, person(request))
        return respond(RibbonSerializer(ribbon.of(job, selectors.course(job), now=clock.now())))


class ReceiptsView(ApiView):
    @extend_schema(responses=ReceiptsSerializer)
    def get(self, request: Request, uid: UUID) -> Response:
        """Evictions of its pods for other jobs, and of other pods for this job; the newest twenty of each."""
        job = selectors.get(uid, person(request))
        yielded = receipts.made_room_for(job)
        found = {
            "yielded": yielded,
            "gained": receipts.gained(job),
            "queue_position": receipts.queue_position(job, yielded),
        }
        return respond(ReceiptsSerializer(found))


class ReclaimRiskView(ApiView):
    @extend_schema(responses=ReclaimRiskSerializer)
    def get(self, request: Request, uid: UUID) -> Response:
        """The number of pods with borrowed resources, and the queues that can reclaim them."""
        user = person(request)
        return respond(
            ReclaimRiskSerializer(reclaim_risk.visible_risk(user, selectors.get(uid, user), now=clock.now()))
        )
