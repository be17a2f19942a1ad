"""OpenPAI's API: what its clients rely on."""

from datetime import timedelta

import pytest
import yaml
from rest_framework.test import APIClient
from tests.api.openpai import V1, V2, config, old_config, refused, send

from hekla.api.openpai import states
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.openpai.models import Submission
from hekla.apps.queues import services as queues
from hekla.apps.secrets import selectors as secrets
from hekla.apps.secrets.models import JobSecrets
from hekla.apps.tenancy import services as tenancy
from hekla.domain.phases import JobPhase, PodPhase
from hekla.lib import clock

SECRET = "open-sesame"


def names(answer):
    return [job["name"] for job in answer.json()]


# Submission.


@pytest.mark.parametrize("kind", ["text/yaml", "application/x-yaml", "text/plain", "application/octet-stream"])
def test_jobconfig_is_accepted_with_any_yaml_content_type(alice, kind):
    answer = send(alice, config("Train_1"), kind=kind)
    assert answer.status_code == 202
    body = answer.json()
    assert (body["status"], body["message"]) == (202, "Update job Train_1 for user alice successfully.")
    assert [warning.partition(":")[0] for warning in body["warnings"]] == ["name"]
    job = Job.objects.get()
    assert (job.name, job.queue.name, job.tenant.slug, job.owner.username) == ("train-1", "default", "lab", "alice")


def test_jobconfig_is_accepted_as_json(alice):
    assert alice.post(f"{V2}/jobs", config("json ☺".replace(" ☺", "")), format="json").status_code == 202
    assert names(alice.get(f"{V2}/jobs")) == ["json"]


def test_answer_lists_ignored_fields(alice):
    answer = send(alice, config(extras={"storages": [{"name": "nas"}]}))
    assert answer.json()["warnings"] == ["extras.storages: ignored: OpenPAI storage is not mounted."]


@pytest.mark.parametrize(
    ("document", "status", "code"),
    [
        (config(taskRoles={}), 400, "InvalidProtocolError"),
        (config(defaults={"virtualCluster": "nowhere"}), 400, "NoVirtualClusterError"),
        (config(defaults={"virtualCluster": "theirs"}), 400, "NoVirtualClusterError"),
        (config(role={"resourcePerInstance": {"cpu": 99, "memoryMB": 1, "gpu": 0}}), 400, "InvalidProtocolError"),
        (config("x" * 256), 400, "InvalidProtocolError"),
        ({"apiVersion": "batch/v1", "kind": "Job"}, 400, "InvalidProtocolError"),
        ({"a": "b"}, 400, "InvalidProtocolError"),
    ],
)
def test_refusals_have_openpai_codes(alice, document, status, code):
    assert refused(send(alice, document)) == (status, code)
    assert not Job.objects.exists()


@pytest.mark.parametrize("text", ["", "[", "- a", "a: 1\n---\nb: 2", "protocolVersion: 2", "x" * 1_100_000])
def test_malformed_bodies_get_openpai_errors(alice, text):
    answer = alice.post(f"{V2}/jobs", text, content_type="text/yaml")
    assert answer.status_code in {400, 413}
    assert set(answer.json()) == {"code", "message"}


def test_names_are_per_user(alice, bob):
    assert [send(client, config("train")).status_code for client in (alice, bob)] == [202, 202]
    assert refused(send(alice, config("train"))) == (409, "ConflictJobError")
    found = {job.owner.username: job.name for job in Job.objects.all()}
    assert found["alice"] == "train"
    assert found["bob"].startswith("train-")
    assert Job.objects.get(owner__username="bob").spec["plugins"]["openpai"] == ["--name=train"]
    for client in ("alice", "bob"):
        assert alice.get(f"{V2}/jobs/{client}~train").json()["jobStatus"]["username"] == client


def test_the_name_of_a_deleted_job_is_free_again(alice):
    send(alice, config("train"))
    alice.put(f"{V2}/jobs/alice~train/executionType", {"value": "STOP"}, format="json")
    assert alice.delete(f"{V1}/user/alice/jobs/train").status_code == 202
    assert refused(alice.get(f"{V2}/jobs/alice~train")) == (404, "NoJobError")
    assert send(alice, config("train")).status_code == 202
    assert Submission.objects.count() == 1


def test_a_job_that_runs_is_not_deleted(alice):
    send(alice, config("train"))
    assert refused(alice.delete(f"{V1}/user/alice/jobs/train")) == (409, "ConflictJobError")


def test_virtual_cluster_determines_the_tenant(world, alice):
    now = clock.now()
    second = tenancy.create(slug="annex", name="Annex", actor=PLATFORM, now=now)
    tenancy.add_member(second, world.people["alice"], "member", actor=PLATFORM, now=now)
    queues.create(cluster=world.cluster, name="labs-own", tenants=[world.tenant], actor=PLATFORM, now=now)
    send(alice, config("one"))
    send(alice, config("two", defaults={"virtualCluster": "Labs_Own"}))
    send(alice, config("three"), "?tenant=lab")
    assert {job.name: job.tenant.slug for job in Job.objects.all()} == {"one": "annex", "two": "lab", "three": "lab"}
    assert send(alice, config("four"), "?tenant=other").status_code == 404


# Secrets.


def with_secret(name="secretive"):
    token = {"commands": ["curl -u <% $secrets.token %> https://somewhere"]}
    images = [{"type": "dockerimage", "name": "image", "uri": "x", "auth": {"username": "u", "password": SECRET}}]
    return config(name, role=token, secrets={"token": SECRET}, prerequisites=images)


def test_secrets_are_never_revealed(alice, bob, caplog):
    send(alice, with_secret())
    job = Job.objects.get()
    texts = [alice.get(f"{V2}/jobs/alice~secretive{more}").content.decode() for more in ("", "/config", "/events")]
    texts += [
        bob.get(f"/api/v1/jobs/{job.uid}").content.decode(),
        bob.get(f"{V1}/user/alice/jobs/secretive/config").content.decode(),
    ]
    texts += [str(job.spec), str(Submission.objects.get().config), str(list(LoggedEvent.objects.values())), caplog.text]
    assert not [text for text in texts if SECRET in text]
    assert yaml.safe_load(texts[1])["secrets"] == "******"
    assert "<% $secrets.token %>" in texts[1]
    assert secrets.of_job(job.uid) == {"token": SECRET}
    assert SECRET.encode() not in bytes(JobSecrets.objects.get().values)


def test_secrets_are_deleted_with_the_job(alice):
    send(alice, with_secret())
    alice.put(f"{V2}/jobs/alice~secretive/executionType", {"value": "STOP"}, format="json")
    assert JobSecrets.objects.exists()
    alice.delete(f"{V1}/user/alice/jobs/secretive")
    assert not JobSecrets.objects.exists()


def test_a_copy_without_its_secrets_is_refused(alice):
    send(alice, with_secret())
    copy = yaml.safe_load(alice.get(f"{V2}/jobs/alice~secretive/config").content)
    answer = send(alice, {**copy, "name": "copy"})
    assert refused(answer) == (400, "InvalidProtocolError")
    assert "The secret “token” has no value." in answer.json()["message"]


# Lists and descriptions.


def test_list_is_filtered_sorted_and_paged(alice, bob):
    for name in ("a", "b", "c"):
        send(alice, config(name))
    send(bob, config("d"))
    jobs = f"{V2}/jobs"
    assert names(alice.get(jobs)) == ["d", "c", "b", "a"]
    assert names(alice.get(f"{jobs}?username=alice&order=jobName,ASC")) == ["a", "b", "c"]
    assert names(alice.get(f"{jobs}?username=alice,bob&limit=2&offset=1")) == ["c", "b"]
    assert names(alice.get(f"{jobs}?keyword=bo")) == ["d"]
    assert names(alice.get(f"{jobs}?keyword=defau&vc=default")) == ["d", "c", "b", "a"]
    assert names(alice.get(f"{jobs}?vc=other")) == []
    assert names(alice.get(f"{jobs}?state=RUNNING,FAILED")) == []
    assert names(alice.get(f"{jobs}?order=vc,DESC&limit=1")) == ["d"]
    counted = alice.get(f"{jobs}?withTotalCount=true&limit=1").json()
    assert (counted["totalCount"], names_in(counted["data"])) == (4, ["d"])
    assert names(alice.get(f"{V1}/user/alice/jobs")) == ["c", "b", "a"]


def names_in(rows):
    return [row["name"] for row in rows]


@pytest.mark.parametrize("query", ["limit=x", "limit=5001", "offset=-1", "limit=99999999999999999999", "keyword=%00"])
def test_invalid_list_queries_are_refused(alice, query):
    assert refused(alice.get(f"{V2}/jobs?{query}")) == (400, "InvalidParametersError")


def test_list_query_count_is_constant(alice, django_assert_max_num_queries):
    for number in range(8):
        send(alice, config(f"job{number}"))
    with django_assert_max_num_queries(5):
        assert len(alice.get(f"{V2}/jobs").json()) == 8


def test_summary_has_openpai_fields(alice):
    role = {"instances": 2, "resourcePerInstance": {"cpu": 1, "memoryMB": 64, "gpu": 0}}
    send(alice, config(role=role, extras={"hivedScheduler": {"jobPriorityClass": "prod"}}))
    (body,) = alice.get(f"{V2}/jobs").json()
    at = int(Job.objects.get().submitted_at.timestamp() * 1000)
    assert body == {
        "debugId": str(Job.objects.get().uid),
        "name": "train",
        "username": "alice",
        "state": "WAITING",
        "subState": "AttemptCreationPending",
        "executionType": "START",
        "tags": [],
        "retries": 0,
        "retryDetails": {"user": 0, "platform": 0, "resource": 0},
        "retryDelayTime": None,
        "submissionTime": at,
        "createdTime": at,
        "launchedTime": None,
        "completedTime": None,
        "appExitCode": None,
        "virtualCluster": "default",
        "jobPriority": "prod",
        "totalGpuNumber": 0,
        "totalTaskNumber": 2,
        "totalTaskRoleNumber": 1,
    }


def test_job_of_the_rest_api_has_its_own_name(alice, a_job):
    alice.post("/api/v1/jobs", a_job, format="json")
    body = alice.get(f"{V2}/jobs/alice~train").json()
    assert (body["name"], list(body["taskRoles"])) == ("train", ["worker"])
    written = yaml.safe_load(alice.get(f"{V2}/jobs/alice~train/config").content)
    assert written["taskRoles"]["worker"]["commands"] == ["true"]
    assert refused(send(alice, config("train"))) == (409, "ConflictJobError")


def test_the_config_is_what_was_sent(alice):
    sent = config("Kept", parameters={"x": 1}, extras={"submitFrom": "a form", "unknown": [1, None, 0.5]})
    send(alice, sent)
    answer = alice.get(f"{V2}/jobs/alice~Kept/config")
    assert answer["Content-Type"] == "text/yaml; charset=utf-8"
    assert yaml.safe_load(answer.content) == sent


@pytest.fixture
def finished_job(alice):
    """A job of two workers that restarted once. In the second attempt one worker failed and the other succeeded."""
    send(alice, config("ran", role={"instances": 2, "completion": {"minFailedInstances": 1}}))
    job, now = Job.objects.get(), clock.now()
    rows = [(0, 1, 1, "failed", False, 3), (1, 1, 1, "failed", True, None), (0, 2, 2, "failed", False, 7)]
    rows += [(1, 2, 2, "succeeded", False, 0)]
    for index, attempt, version, phase, stopping, code in rows:
        Pod.objects.create(
            job=job, task="worker", index=index, attempt=attempt, version=version, slot=index, phase=phase, node="n",
            address=f"10.0.0.{index}", stopping=stopping, exit_code=code, created_at=now, started_at=now,
            finished_at=now + timedelta(seconds=attempt),
        )  # fmt: skip
    Job.objects.filter(pk=job.pk).update(
        phase="terminated", version=2, retry_count=1, message="worker-0 failed.", finished_at=now, started_at=now
    )
    return job


def test_job_lists_its_tasks(alice, finished_job):
    body = alice.get(f"{V2}/jobs/alice~ran").json()
    status = body["jobStatus"]
    wanted = {"state": "FAILED", "attemptId": 1, "retries": 1, "appExitCode": 7, "appExitTriggerTaskIndex": 0}
    wanted |= {
        "appExitTriggerTaskRoleName": "worker",
        "appExitTriggerMessage": "worker-0 failed.",
        "subState": "Completed",
    }
    assert {name: status[name] for name in wanted} == wanted
    tasks = body["taskRoles"]["worker"]["taskStatuses"]
    facts = ("taskIndex", "taskState", "containerExitCode", "containerIp", "containerNodeName", "attemptId")
    assert [tuple(task[name] for name in facts) for task in tasks] == [
        (0, "FAILED", 7, "10.0.0.0", "n", 0),
        (1, "SUCCEEDED", 0, "10.0.0.1", "n", 0),
    ]
    assert set(tasks[0]["containerPorts"]) == {"ssh", "http"}
    assert tasks[0]["containerLog"].startswith("/rest-server/api/v2/jobs/alice~ran/attempts/1/taskRoles/worker/")


def test_earlier_attempts_are_listed(alice, finished_job):
    last, first = alice.get(f"{V2}/jobs/alice~ran/job-attempts").json()
    assert [(one["attemptIndex"], one["state"], one["exitCode"], one["isLatest"]) for one in (first, last)] == [
        (0, "FAILED", 3, False),
        (1, "FAILED", 7, True),
    ]
    assert alice.get(f"{V2}/jobs/alice~ran/job-attempts/0").json() == first
    stopped = alice.get(f"{V2}/jobs/alice~ran/attempts/0").json()["taskRoles"]["worker"]["taskStatuses"][1]
    assert (stopped["taskState"], stopped["containerExitCode"]) == ("STOPPED", states.USER_STOP)
    assert alice.get(f"{V2}/jobs/alice~ran/job-attempts/healthz").status_code == 200
    for path in ("attempts/2", "job-attempts/2"):
        assert refused(alice.get(f"{V2}/jobs/alice~ran/{path}")) == (404, "NoJobError")


def test_task_links_to_its_log(alice, finished_job):
    task = f"{V2}/jobs/alice~ran/attempts/1/taskRoles/worker/taskIndex/0/attempts"
    body = alice.get(task).json()
    assert (body["jobName"], body["taskState"], [one["attemptId"] for one in body["attempts"]]) == (
        "ran",
        "FAILED",
        [0],
    )
    (location,) = alice.get(f"{task}/0/logs").json()["locations"]
    assert location["name"] == "all"
    answer = alice.get(location["uri"])
    assert (answer.status_code, answer["Content-Type"]) == (200, "text/plain; charset=utf-8")
    assert refused(alice.get(f"{task}/1/logs")) == (404, "NoTaskLogError")
    assert refused(alice.get(task.replace("worker", "boss"))) == (404, "NoTaskError")
    assert refused(alice.get(task.replace("taskIndex/0", "taskIndex/2"))) == (404, "NoTaskError")


def test_events_are_listed_newest_first(alice):
    send(alice, config())
    alice.put(f"{V2}/jobs/alice~train/executionType", {"value": "STOP"}, format="json")
    body = alice.get(f"{V2}/jobs/alice~train/events").json()
    assert body["totalCount"] == len(body["data"])
    assert body["data"][-1]["reason"] == "JobSubmitted"
    assert "queue default" in body["data"][-1]["message"]
    warnings = alice.get(f"{V2}/jobs/alice~train/events?type=Warning").json()["data"]
    assert {event["type"] for event in warnings} == {"Warning"}


def test_ssh_is_not_available(alice):
    send(alice, config())
    assert refused(alice.get(f"{V2}/jobs/alice~train/ssh")) == (404, "NoJobSshInfoError")


# Start and stop.


def test_a_job_is_stopped_and_started(alice, bob):
    send(alice, config())
    path = f"{V2}/jobs/alice~train/executionType"

    def set_execution_type(client, value):
        answer = client.put(path, {"value": value}, format="json")
        return answer.status_code, alice.get(f"{V2}/jobs/alice~train").json()["jobStatus"]["state"]

    assert set_execution_type(alice, "START") == (202, "WAITING")
    assert set_execution_type(bob, "STOP") == (403, "WAITING")
    assert set_execution_type(alice, "STOP") == (202, "STOPPED")
    assert alice.get(f"{V2}/jobs?state=STOPPED").json()[0]["executionType"] == "STOP"
    assert set_execution_type(alice, "STOP") == (202, "STOPPED")
    assert set_execution_type(bob, "STOP") == (403, "STOPPED")
    assert set_execution_type(alice, "START") == (202, "WAITING")
    assert refused(alice.put(path, {"value": "PAUSE"}, format="json")) == (400, "InvalidParametersError")


@pytest.mark.parametrize("phase", ["completing", "terminating", "completed", "failed"])
def test_stop_of_an_ending_job_changes_nothing(alice, phase):
    send(alice, config())
    Job.objects.update(phase=phase)
    answer = alice.put(f"{V2}/jobs/alice~train/executionType", {"value": "STOP"}, format="json")
    assert (answer.status_code, Job.objects.get().phase) == (202, phase)


STATES = [
    ("pending", False, "WAITING"),
    ("running", False, "RUNNING"),
    ("running", True, "RUNNING"),
    ("restarting", True, "RUNNING"),
    ("aborting", False, "STOPPING"),
    ("aborted", True, "STOPPED"),
    ("completing", False, "RUNNING"),
    ("completed", True, "SUCCEEDED"),
    ("terminating", False, "STOPPING"),
    ("terminating", True, "RUNNING"),
    ("terminated", False, "STOPPED"),
    ("terminated", True, "FAILED"),
    ("failed", False, "FAILED"),
]


def test_every_phase_has_a_state():
    assert {phase for phase, _, _ in STATES} == {phase.value for phase in JobPhase}
    assert {state for _, _, state in STATES} == set(states.STATES)


@pytest.mark.parametrize(("phase", "failed", "state"), STATES)
def test_states_are_reported_and_can_be_filtered(alice, phase, failed, state):
    send(alice, config())
    job = Job.objects.get()
    Job.objects.update(phase=phase)
    if failed:
        Pod.objects.create(
            job=job, task="worker", index=0, attempt=1, version=1, slot=1, phase="failed", created_at=clock.now()
        )
    assert alice.get(f"{V2}/jobs/alice~train").json()["jobStatus"]["state"] == state
    found = {other: names(alice.get(f"{V2}/jobs?state={other}")) for other in states.STATES}
    assert found == {other: ["train"] if other == state else [] for other in states.STATES}


@pytest.mark.parametrize(
    ("phase", "stopping", "state"),
    [
        (None, False, "WAITING"),
        ("pending", False, "WAITING"),
        ("bound", False, "WAITING"),
        ("preparing", False, "WAITING"),
        ("running", False, "RUNNING"),
        ("succeeded", False, "SUCCEEDED"),
        ("failed", False, "FAILED"),
        ("failed", True, "STOPPED"),
        ("lost", False, "FAILED"),
    ],
)
def test_states_of_tasks(phase, stopping, state):
    pod = Pod(phase=phase, stopping=stopping) if phase else None
    assert phase is None or PodPhase(phase)
    assert states.pod_state(pod) == state


# Tags.


def test_tags_are_added_filtered_and_removed(alice, bob):
    send(alice, config())
    send(alice, config("other"))
    path = f"{V2}/jobs/alice~train/tag"
    assert [alice.put(path, {"value": "odd"}, format="json").status_code for _ in range(2)] == [200, 200]
    assert [event.payload for event in LoggedEvent.objects.filter(kind="JobTagged")] == [{"tag": "odd", "is_on": True}]
    assert alice.get(f"{V2}/jobs/alice~train").json()["tags"] == ["odd"]
    assert names(alice.get(f"{V2}/jobs?tagsContain=odd,even")) == ["train"]
    assert names(alice.get(f"{V2}/jobs?tagsNotContain=odd")) == ["other"]
    assert refused(bob.put(path, {"value": "mine"}, format="json")) == (403, "ForbiddenUserError")
    assert refused(alice.delete(path, {"value": "even"}, format="json")) == (404, "NoTagError")
    assert alice.delete(path, {"value": "odd"}, format="json").status_code == 200
    assert refused(alice.put(path, {"value": ""}, format="json")) == (400, "InvalidParametersError")
    assert alice.put(path, {"value": "x" * 101}, format="json").status_code == 400


# Version 1.


def test_version_1_accepts_put_and_post(alice, bob):
    sent = old_config("old.Job")
    assert alice.put(f"{V1}/user/alice/jobs/old.Job", sent, format="json").status_code == 202
    assert alice.post(f"{V1}/user/alice/jobs", old_config("second"), format="json").status_code == 202
    assert refused(bob.put(f"{V1}/user/alice/jobs/x", sent, format="json")) == (403, "ForbiddenUserError")
    assert names(bob.get(f"{V1}/jobs?username=alice")) == ["second", "old.Job"]
    assert bob.get(f"{V1}/user/alice/jobs/old.Job").json()["name"] == "old.Job"
    assert bob.get(f"{V1}/jobs/alice~old.Job").json()["name"] == "old.Job"
    assert bob.get(f"{V1}/user/alice/jobs/old.Job/config").json() == sent
    assert yaml.safe_load(bob.get(f"{V2}/jobs/alice~old.Job/config").content)["protocolVersion"] == 2
    assert refused(bob.get(f"{V1}/user/alice/jobs/old.Job/ssh")) == (404, "NoJobSshInfoError")
    stop = f"{V1}/user/alice/jobs/old.Job/executionType"
    assert alice.put(stop, {"value": "STOP"}, format="json").status_code == 202


# Users and queues.


def test_info_and_user_endpoints(alice, root):
    anybody = APIClient()
    info = anybody.get(f"{V2}/info").json()
    assert (info["launcherType"], info["authnMethod"]) == ("k8s", "basic")
    assert anybody.get(V1).json() == anybody.get(f"{V1}/").json() == info
    assert anybody.get(f"{V2}/authn/info").json()["loginURI"] == "/api/v1/authn/basic/login"
    me = alice.get(f"{V2}/users/alice").json()
    assert (me["admin"], me["virtualCluster"], me["grouplist"]) == (False, ["default"], ["lab"])
    assert [one["username"] for one in alice.get(f"{V2}/users/").json()] == ["alice"]
    assert refused(alice.get(f"{V2}/users/bob")) == (404, "NoUserError")
    assert root.get(f"{V2}/user/bob").json()["username"] == "bob"
    assert len(root.get(f"{V2}/users").json()) == 4
    assert alice.get(f"{V2}/storages").json() == {"storages": []}


def test_queues_are_virtual_clusters(alice, charlie):
    body = alice.get(f"{V2}/virtual-clusters").json()
    assert list(body) == ["default"]
    assert body["default"]["resourcesTotal"] == {"cpu": 4, "memory": 8192, "gpu": 0, "vCores": 4, "GPUs": 0}
    assert (body["default"]["capacity"], body["default"]["status"]) == (100, "RUNNING")
    assert alice.get(f"{V1}/virtual-clusters/default").json() == body["default"]
    assert refused(alice.get(f"{V2}/virtual-clusters/theirs")) == (404, "NoVirtualClusterError")
    assert set(charlie.get(f"{V2}/virtual-clusters").json()) == {"default", "theirs"}
