"""URLs of version 1 of the API."""

from typing import Any

from django.urls import URLPattern, path

from hekla.api.v1 import (
    audit,
    batches,
    clusters,
    departments,
    federated_queues,
    files,
    flows,
    following,
    forks,
    gallery,
    imports,
    invitations,
    jobs,
    many_jobs,
    nodes,
    notifications,
    people,
    policies,
    presets,
    priorities,
    queues,
    quotas,
    recordings,
    runs,
    schedules,
    search,
    sessions,
    sharing,
    start,
    uploads,
    watching,
    what_if,
)
from hekla.api.v1.schema import SchemaView
from hekla.api.views import ResourceViewSet

_LIST = {"get": "list", "post": "create"}
_ONE = {"get": "retrieve", "patch": "partial_update", "delete": "destroy"}


def resource(address: str, key: str, views: type[ResourceViewSet[Any]], *, name: str) -> list[URLPattern]:
    """The URLs of a list and of one resource in it, with the methods whose actions `views` implements."""
    lists: dict[str, Any] = {verb: action for verb, action in _LIST.items() if hasattr(views, action)}
    one: dict[str, Any] = {verb: action for verb, action in _ONE.items() if hasattr(views, action)}
    return [
        path(address, views.as_view(lists), name=address.replace("-", "_")),
        path(f"{address}/{key}", views.as_view(one), name=name),
    ]


app_name = "v1"
urlpatterns = [
    path("schema", SchemaView.as_view(), name="schema"),
    path("me", people.MeView.as_view(), name="me"),
    path("search", search.SearchView.as_view(), name="search"),
    path("tokens", people.TokenListView.as_view(), name="tokens"),
    path("tokens/<int:token_id>", people.TokenView.as_view(), name="token"),
    path("people/<str:username>/second-factor", people.SecondFactorView.as_view(), name="second_factor"),
    path("people/import", imports.PeopleImportView.as_view(), name="import_people"),
    path("audit", audit.AuditView.as_view(), name="audit"),
    path("roles", people.RolesView.as_view(), name="roles"),
    path("tenants", people.TenantsView.as_view(), name="tenants"),
    path("tenants/<slug:slug>/retention", people.RetentionView.as_view(), name="retention"),
    path("tenants/<slug:slug>/invitations", invitations.InvitationListView.as_view(), name="invitations"),
    path(
        "tenants/<slug:slug>/invitations/<int:invitation_id>", invitations.InvitationView.as_view(), name="invitation"
    ),
    path("departments", departments.DepartmentListView.as_view(), name="departments"),
    path("departments/<slug:slug>", departments.DepartmentView.as_view(), name="department"),
    path("tenants/<slug:slug>/quotas", quotas.QuotasView.as_view(), name="quotas"),
    path("jobs", jobs.JobListView.as_view(), name="jobs"),
    path("jobs/bulk", many_jobs.BulkActionView.as_view(), name="jobs_bulk"),
    path("jobs/groups", many_jobs.JobGroupsView.as_view(), name="job_groups"),
    path("jobs/compare", runs.JobComparisonView.as_view(), name="jobs_compare"),
    path("jobs/<uuid:uid>", jobs.JobDetailView.as_view(), name="job"),
    path("jobs/<uuid:uid>/copy", jobs.JobCopyView.as_view(), name="job_copy"),
    path("jobs/<uuid:uid>/actions", jobs.JobActionsView.as_view(), name="job_actions"),
    path("jobs/<uuid:uid>/scale", jobs.JobScaleView.as_view(), name="job_scale"),
    path("jobs/<uuid:uid>/autoscaling", following.JobAutoscalingView.as_view(), name="job_autoscaling"),
    path("jobs/<uuid:uid>/priority", jobs.JobPriorityView.as_view(), name="job_priority"),
    path("jobs/<uuid:uid>/sessions", sessions.JobSessionsView.as_view(), name="job_sessions"),
    path("jobs/<uuid:uid>/sessions/<uuid:session>", sessions.JobSessionView.as_view(), name="job_session"),
    path("jobs/<uuid:uid>/sessions/<uuid:session>/url", sessions.JobSessionUrlView.as_view(), name="job_session_url"),
    path("jobs/<uuid:uid>/terminals", sharing.JobTerminalsView.as_view(), name="job_terminals"),
    path("jobs/<uuid:uid>/guests", sharing.JobGuestsView.as_view(), name="job_guests"),
    path("jobs/<uuid:uid>/forks", forks.JobForksView.as_view(), name="job_forks"),
    path("jobs/<uuid:uid>/recordings", recordings.JobRecordingsView.as_view(), name="job_recordings"),
    path("guests", sharing.GuestsView.as_view(), name="guests"),
    path("guests/<uuid:uid>", sharing.GuestView.as_view(), name="guest"),
    path("guests/<uuid:uid>/accept", sharing.GuestAcceptView.as_view(), name="guest_accept"),
    path("guests/<uuid:uid>/url", sharing.GuestUrlView.as_view(), name="guest_url"),
    path("recordings/<uuid:uid>", recordings.RecordingView.as_view(), name="recording"),
    path("recordings/<uuid:uid>/cast", recordings.RecordingCastView.as_view(), name="recording_cast"),
    path("recordings/<uuid:uid>/cuts", recordings.RecordingCutsView.as_view(), name="recording_cuts"),
    path("jobs/<uuid:uid>/start", start.JobStartView.as_view(), name="job_start"),
    path("jobs/<uuid:uid>/waits", watching.JobWaitsView.as_view(), name="job_waits"),
    path("jobs/<uuid:uid>/reclaim-risk", watching.ReclaimRiskView.as_view(), name="job_reclaim_risk"),
    path("jobs/<uuid:uid>/receipts", watching.ReceiptsView.as_view(), name="job_receipts"),
    path("jobs/<uuid:uid>/events", following.JobEventsView.as_view(), name="job_events"),
    path("jobs/<uuid:uid>/pods/<slug:task>/<int:index>", following.PodAttemptsView.as_view(), name="pod_attempts"),
    path("jobs/<uuid:uid>/pods/<slug:task>/<int:index>/usage", following.PodUsageView.as_view(), name="pod_usage"),
    path(
        "jobs/<uuid:uid>/pods/<slug:task>/<int:index>/log/search",
        following.PodLogSearchView.as_view(),
        name="pod_search",
    ),
    path("jobs/<uuid:uid>/pods/<slug:task>/<int:index>/log", following.PodLogView.as_view(), name="pod_log"),
    path("jobs/<uuid:uid>/pods/<slug:task>/<int:index>/files", files.PodFilesView.as_view(), name="pod_files"),
    path("jobs/<uuid:uid>/pods/<slug:task>/<int:index>/file", files.PodFileView.as_view(), name="pod_file"),
    path(
        "jobs/<uuid:uid>/pods/<slug:task>/<int:index>/files/search",
        files.PodFileSearchView.as_view(),
        name="pod_file_search",
    ),
    path("jobs/<uuid:uid>/pods/<slug:task>/<int:index>/archive", files.PodArchiveView.as_view(), name="pod_archive"),
    path(
        "jobs/<uuid:uid>/pods/<slug:task>/<int:index>/file/preview",
        files.PodFilePreviewView.as_view(),
        name="pod_file_preview",
    ),
    path("jobs/<uuid:uid>/pods/<slug:task>/<int:index>/uploads", uploads.PodUploadsView.as_view(), name="pod_uploads"),
    path("uploads/<uuid:uid>", uploads.UploadView.as_view(), name="upload"),
    path("what-if", what_if.WhatIfView.as_view(), name="what_if"),
    path("jobs/<uuid:uid>/notifications", notifications.JobNotificationsView.as_view(), name="job_notifications"),
    path("notifications", notifications.NotificationListView.as_view(), name="notifications"),
    path("notifications/settings", notifications.NotificationPreferencesView.as_view(), name="notification_settings"),
    *resource("flows", "<uuid:uid>", flows.FlowViewSet, name="flow"),
    path("flows/<uuid:uid>/stop", flows.StopFlowView.as_view(), name="flow_stop"),
    *resource("templates", "<uuid:uid>", flows.TemplateViewSet, name="template"),
    *resource("gallery", "<uuid:uid>", gallery.GalleryViewSet, name="gallery_card"),
    path("gallery/<uuid:uid>/jobs", gallery.GalleryViewSet.as_view({"post": "begin"}), name="gallery_begin"),
    *resource("presets", "<uuid:uid>", presets.PresetViewSet, name="preset"),
    path("presets/<uuid:uid>/copy", presets.PresetViewSet.as_view({"get": "copy"}), name="preset_copy"),
    *resource("batches", "<uuid:uid>", batches.BatchViewSet, name="batch"),
    path("batches/<uuid:uid>/actions", batches.BatchActionsView.as_view(), name="batch_actions"),
    *resource("schedules", "<uuid:uid>", schedules.ScheduleViewSet, name="schedule"),
    path("schedules/<uuid:uid>/actions", schedules.ScheduleActionsView.as_view(), name="schedule_actions"),
    path("queues", queues.QueueListView.as_view(), name="queues"),
    path("queues/<slug:name>", queues.QueueDetailView.as_view(), name="queue"),
    path("queues/<slug:name>/shares", queues.QueueSharesView.as_view(), name="queue_shares"),
    path("queues/<slug:name>/preview", queues.QueuePreviewView.as_view(), name="queue_preview"),
    *resource("federated-queues", "<slug:name>", federated_queues.FederatedQueueViewSet, name="federated_queue"),
    path("clusters", clusters.ClusterListView.as_view(), name="clusters"),
    path("clusters/<slug:name>", clusters.ClusterView.as_view(), name="cluster"),
    path("clusters/<slug:name>/try", clusters.ClusterProbeView.as_view(), name="cluster_try"),
    path("clusters/<slug:name>/key", clusters.ClusterKeyView.as_view(), name="cluster_key"),
    path("clusters/<slug:name>/policy", policies.PolicyView.as_view(), name="policy"),
    path("clusters/<slug:name>/policy/trial", policies.PolicyTrialView.as_view(), name="policy_trial"),
    path("nodes", nodes.NodesView.as_view(), name="nodes"),
    path("environments", nodes.EnvironmentsView.as_view(), name="environments"),
    *resource("priority-classes", "<slug:name>", priorities.PriorityClassViewSet, name="priority_class"),
]
