"""OpenPAI's addresses, behind `/rest-server/api/`: those of version 2, and what was there before it."""

from django.urls import URLPattern, include, path, re_path

from hekla.api.openpai import history, jobs, people, places
from hekla.api.openpai.views import Nothing

app_name = "openpai"


def _job(prefix: str, suffix: str = "", *, is_version_1: bool = False) -> list[URLPattern]:
    """What can be asked about one job."""
    view = jobs.OldJob if is_version_1 else jobs.OneJob
    config = jobs.Config.as_view(is_version_1=is_version_1)
    return [
        path(prefix, view.as_view(), name=f"job{suffix}"),
        path(f"{prefix}/config", config, name=f"config{suffix}"),
        path(f"{prefix}/ssh", jobs.Ssh.as_view(), name=f"ssh{suffix}"),
        path(f"{prefix}/executionType", jobs.ExecutionType.as_view(), name=f"execution_type{suffix}"),
    ]


def _common() -> list[URLPattern]:
    """What both versions have."""
    return [
        path("info", people.Info.as_view(), name="info"),
        path("authn/info", people.AuthnInfo.as_view(), name="authn_info"),
        path("authn/basic/login", people.Login.as_view(), name="login"),
        path("authn/basic/logout", people.Logout.as_view(), name="logout"),
        path("jobs", jobs.Jobs.as_view(), name="jobs"),
        path("virtual-clusters", places.VirtualClusters.as_view(), name="virtual_clusters"),
        path("virtual-clusters/<str:name>", places.VirtualCluster.as_view(), name="virtual_cluster"),
    ]


_ATTEMPT = "jobs/<str:job>/attempts/<int:attempt>"
_TASK = f"{_ATTEMPT}/taskRoles/<str:role>/taskIndex/<int:index>/attempts"
_LOGS = f"{_TASK}/<int:task_attempt>/logs"
_VERSION_2 = [
    path("", people.Info.as_view(), name="root"),
    *_common(),
    *_job("jobs/<str:job>"),
    path(_ATTEMPT, jobs.OneJob.as_view(), name="attempt"),
    path(_TASK, history.Task.as_view(), name="task"),
    path(_LOGS, history.Logs.as_view(), name="logs"),
    path(f"{_LOGS}/all", history.Log.as_view(), name="log"),
    path("jobs/<str:job>/job-attempts", history.JobAttempts.as_view(), name="job_attempts"),
    path("jobs/<str:job>/job-attempts/healthz", history.AttemptsHealth.as_view(), name="attempts_health"),
    path("jobs/<str:job>/job-attempts/<int:attempt>", history.JobAttempt.as_view(), name="job_attempt"),
    path("jobs/<str:job>/events", history.Events.as_view(), name="events"),
    path("jobs/<str:job>/tag", jobs.Tag.as_view(), name="tag"),
    path("token", people.Login.as_view(), name="token"),
    path("tokens", people.Login.as_view(), name="tokens"),
    path("tokens/check", people.TokenCheck.as_view(), name="token_check"),
    path("users", people.Users.as_view(), name="users"),
    path("users/", people.Users.as_view(), name="users_"),
    path("users/<str:username>", people.OneUser.as_view(), name="user"),
    path("user/<str:username>", people.OneUser.as_view(), name="user_"),
    path("storages", places.Storages.as_view(), name="storages"),
]
_VERSION_1 = [
    path("", people.Info.as_view(), name="root"),
    *_common(),
    path("token", people.Login.as_view(), name="token"),
    path("user/<str:user>/jobs", jobs.Jobs.as_view(), name="jobs_of"),
    *_job("user/<str:user>/jobs/<str:name>", "_of", is_version_1=True),
    *_job("jobs/<str:job>", is_version_1=True),
]
urlpatterns = [
    path("v2", people.Info.as_view(), name="root_2"),
    path("v1", people.Info.as_view(), name="root_1"),
    path("v2/", include((_VERSION_2, "v2"))),
    path("v1/", include((_VERSION_1, "v1"))),
    re_path("", Nothing.as_view(), name="nothing"),
]
