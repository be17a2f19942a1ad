"""Volcano's predicate error cache: nodes that refused a pod of a role are skipped for its later pods in a turn.

A node may become feasible again, for example when affine pods arrive. Volcano does not check it again unless
`predicateErrorCacheEnable: false` (`volcano-spec` §3.3); Hekla does, unless the policy follows Volcano.
"""

from collections.abc import Mapping

from hekla.engine.columns import Mask
from hekla.engine.job_info import JobInfo, PodInfo
from hekla.engine.policy import Argument
from hekla.engine.session import Session


class PredicateErrorCache:
    """The cache for one turn of a job, under a policy that follows Volcano."""

    def __init__(self, session: Session, job: JobInfo, arguments: Mapping[str, Argument]) -> None:
        self._session, self._job = session, job
        self._is_on = arguments.get("predicateErrorCacheEnable") is not False
        self._varies: dict[str, bool] = {}
        self._feasible: dict[str, Mask] = {}

    def feasible_rows(self, pod: PodInfo) -> Mask | None:
        """Rows that refused no pod of this role so far. None: no cache is needed."""
        role = pod.spec.role
        if not self._is_on or not role or not self._may_vary(pod):
            return None
        welcome = self._session.node_fit(pod).with_room()
        self._feasible[role] = welcome & self._feasible.get(role, welcome)
        return self._feasible[role]

    def _may_vary(self, pod: PodInfo) -> bool:
        """Whether feasibility can change within the role: it depends on other pods, or the pods differ."""
        role = pod.spec.role
        if role not in self._varies:
            alike = {one.class_number for one in self._job.pods if one.spec.role == role}
            self._varies[role] = len(alike) > 1 or self._session.node_fit(pod).depends_on_pods
        return self._varies[role]
