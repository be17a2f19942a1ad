"""The addresses of version 1."""

from django.urls import path

from hekla.api.v1 import batches, flows, following, jobs, people, places, queues, schedules
from hekla.api.v1.schema import Schema

app_name = "v1"
urlpatterns = [
    path("schema", Schema.as_view(), name="schema"),
    path("me", people.Me.as_view(), name="me"),
    path("tokens", people.Tokens.as_view(), name="tokens"),
    path("tokens/<int:token_id>", people.Token.as_view(), name="token"),
    path("tenants", people.Tenants.as_view(), name="tenants"),
    path("tenants/<slug:slug>/retention", people.Retention.as_view(), name="retention"),
    path("jobs", jobs.Jobs.as_view(), name="jobs"),
    path("jobs/<uuid:uid>", jobs.OneJob.as_view(), name="job"),
    path("jobs/<uuid:uid>/actions", jobs.Actions.as_view(), name="job_actions"),
    path("jobs/<uuid:uid>/scale", jobs.Scale.as_view(), name="job_scale"),
    path("jobs/<uuid:uid>/events", following.Events.as_view(), name="job_events"),
    path("jobs/<uuid:uid>/pods/<slug:task>/<int:index>", following.Attempts.as_view(), name="pod_attempts"),
    path("jobs/<uuid:uid>/pods/<slug:task>/<int:index>/use", following.Use.as_view(), name="pod_use"),
    path("jobs/<uuid:uid>/pods/<slug:task>/<int:index>/log/search", following.LogSearch.as_view(), name="pod_search"),
    path("jobs/<uuid:uid>/pods/<slug:task>/<int:index>/log", following.Log.as_view(), name="pod_log"),
    path("flows", flows.Flows.as_view(), name="flows"),
    path("flows/<uuid:uid>", flows.OneFlow.as_view(), name="flow"),
    path("flows/<uuid:uid>/stop", flows.StopFlow.as_view(), name="flow_stop"),
    path("templates", flows.Templates.as_view(), name="templates"),
    path("templates/<uuid:uid>", flows.OneTemplate.as_view(), name="template"),
    path("batches", batches.Batches.as_view(), name="batches"),
    path("batches/<uuid:uid>", batches.OneBatch.as_view(), name="batch"),
    path("batches/<uuid:uid>/actions", batches.BatchActions.as_view(), name="batch_actions"),
    path("schedules", schedules.Schedules.as_view(), name="schedules"),
    path("schedules/<uuid:uid>", schedules.OneSchedule.as_view(), name="schedule"),
    path("schedules/<uuid:uid>/actions", schedules.ScheduleActions.as_view(), name="schedule_actions"),
    path("queues", queues.Queues.as_view(), name="queues"),
    path("queues/<slug:name>", queues.OneQueue.as_view(), name="queue"),
    path("clusters", places.Clusters.as_view(), name="clusters"),
    path("nodes", places.Nodes.as_view(), name="nodes"),
    path("environments", places.Environments.as_view(), name="environments"),
]
