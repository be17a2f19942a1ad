"""OpenPAI's URLs under `/rest-server/api/`, versions 1 and 2."""

from django.urls import URLPattern, include, path, re_path

from hekla.api.openpai import history, jobs, people, virtual_clusters
from hekla.api.openpai.views import UnknownOpenpaiAddressView


def _job(prefix: str, suffix: str = "", *, is_version_1: bool = False) -> list[URLPattern]:
    """The URLs of one job under `prefix`."""
    view = jobs.OpenpaiJobV1View if is_version_1 else jobs.OpenpaiJobView
    config = jobs.JobConfigView.as_view(is_version_1=is_version_1)
    return [
        path(prefix, view.as_view(), name=f"job{suffix}"),
        path(f"{prefix}/config", config, name=f"config{suffix}"),
        path(f"{prefix}/ssh", jobs.SshView.as_view(), name=f"ssh{suffix}"),
        path(f"{prefix}/executionType", jobs.ExecutionTypeView.as_view(), name=f"execution_type{suffix}"),
    ]


def _common() -> list[URLPattern]:
    """The URLs of both versions."""
    return [
        path("info", people.InfoView.as_view(), name="info"),
        path("authn/info", people.AuthnInfoView.as_view(), name="authn_info"),
        path("authn/basic/login", people.LoginView.as_view(), name="login"),
        path("authn/basic/logout", people.LogoutView.as_view(), name="logout"),
        path("jobs", jobs.OpenpaiJobListView.as_view(), name="jobs"),
        path("virtual-clusters", virtual_clusters.VirtualClusterListView.as_view(), name="virtual_clusters"),
        path("virtual-clusters/<str:name>", virtual_clusters.VirtualClusterView.as_view(), name="virtual_cluster"),
    ]


_ATTEMPT = "jobs/<str:job>/attempts/<int:attempt>"
_TASK = f"{_ATTEMPT}/taskRoles/<str:role>/taskIndex/<int:index>/attempts"
_LOGS = f"{_TASK}/<int:task_attempt>/logs"
_VERSION_2 = [
    path("", people.InfoView.as_view(), name="root"),
    *_common(),
    *_job("jobs/<str:job>"),
    path(_ATTEMPT, jobs.OpenpaiJobView.as_view(), name="attempt"),
    path(_TASK, history.OpenpaiTaskView.as_view(), name="task"),
    path(_LOGS, history.OpenpaiLogListView.as_view(), name="logs"),
    path(f"{_LOGS}/all", history.OpenpaiLogView.as_view(), name="log"),
    path("jobs/<str:job>/job-attempts", history.AttemptListView.as_view(), name="job_attempts"),
    path("jobs/<str:job>/job-attempts/healthz", history.AttemptsHealthView.as_view(), name="attempts_health"),
    path("jobs/<str:job>/job-attempts/<int:attempt>", history.AttemptView.as_view(), name="job_attempt"),
    path("jobs/<str:job>/events", history.OpenpaiEventsView.as_view(), name="events"),
    path("jobs/<str:job>/tag", jobs.TagView.as_view(), name="tag"),
    path("token", people.LoginView.as_view(), name="token"),
    path("tokens", people.LoginView.as_view(), name="tokens"),
    path("tokens/check", people.TokenCheckView.as_view(), name="token_check"),
    path("users", people.OpenpaiUserListView.as_view(), name="users"),
    path("users/", people.OpenpaiUserListView.as_view(), name="users_"),
    path("users/<str:username>", people.OpenpaiUserView.as_view(), name="user"),
    path("user/<str:username>", people.OpenpaiUserView.as_view(), name="user_"),
    path("storages", virtual_clusters.StoragesView.as_view(), name="storages"),
]
_VERSION_1 = [
    path("", people.InfoView.as_view(), name="root"),
    *_common(),
    path("token", people.LoginView.as_view(), name="token"),
    path("user/<str:user>/jobs", jobs.OpenpaiJobListView.as_view(), name="jobs_of"),
    *_job("user/<str:user>/jobs/<str:name>", "_of", is_version_1=True),
    *_job("jobs/<str:job>", is_version_1=True),
]
urlpatterns = [
    path("v2", people.InfoView.as_view(), name="root_2"),
    path("v1", people.InfoView.as_view(), name="root_1"),
    path("v2/", include((_VERSION_2, "v2"))),
    path("v1/", include((_VERSION_1, "v1"))),
    re_path("", UnknownOpenpaiAddressView.as_view(), name="nothing"),
]
