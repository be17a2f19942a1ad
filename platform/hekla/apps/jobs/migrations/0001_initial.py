import uuid

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import hekla.domain.phases

# Names are found by any part of them: `hekla_grams` gives every three letters in a row, which an index holds. The
# extension that does so is not among what every PostgreSQL brings.
_GRAMS = """
CREATE FUNCTION hekla_grams(name text) RETURNS text[] LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT array_agg(DISTINCT substr(name, place, 3)) FROM generate_series(1, length(name) - 2) AS place
$$
"""


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("clusters", "0001_initial"),
        ("queues", "0001_initial"),
        ("tenancy", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RunSQL("CREATE SEQUENCE jobs_slot AS bigint MINVALUE 1", reverse_sql="DROP SEQUENCE jobs_slot"),
        migrations.RunSQL(_GRAMS, reverse_sql="DROP FUNCTION hekla_grams(text)"),
        migrations.CreateModel(
            name="Job",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("uid", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ("name", models.CharField(max_length=53)),
                ("spec", models.JSONField()),
                ("kind", models.CharField(max_length=32)),
                ("priority", models.IntegerField(default=0)),
                ("never_preempts", models.BooleanField(default=False)),
                ("replicas", models.PositiveIntegerField()),
                (
                    "phase",
                    models.CharField(
                        choices=[
                            ("pending", "pending"),
                            ("aborting", "aborting"),
                            ("aborted", "aborted"),
                            ("running", "running"),
                            ("restarting", "restarting"),
                            ("completing", "completing"),
                            ("completed", "completed"),
                            ("terminating", "terminating"),
                            ("terminated", "terminated"),
                            ("failed", "failed"),
                        ],
                        default=hekla.domain.phases.JobPhase["PENDING"],
                        max_length=16,
                    ),
                ),
                (
                    "gang_phase",
                    models.CharField(
                        choices=[
                            ("pending", "pending"),
                            ("inqueue", "inqueue"),
                            ("running", "running"),
                            ("unknown", "unknown"),
                            ("completed", "completed"),
                        ],
                        default=hekla.domain.phases.GangPhase["PENDING"],
                        max_length=16,
                    ),
                ),
                ("version", models.PositiveIntegerField(default=1)),
                ("revision", models.PositiveIntegerField(default=1)),
                ("retry_count", models.PositiveIntegerField(default=0)),
                ("reason", models.CharField(blank=True, max_length=64)),
                ("message", models.TextField(blank=True)),
                ("message_facts", models.JSONField(default=list)),
                ("waiting", models.JSONField(default=list)),
                ("reserved_slots", models.JSONField(default=list)),
                ("submitted_at", models.DateTimeField()),
                ("started_at", models.DateTimeField(null=True)),
                ("finished_at", models.DateTimeField(null=True)),
                ("deadline_at", models.DateTimeField(null=True)),
                ("expires_at", models.DateTimeField(null=True)),
                ("deleted_at", models.DateTimeField(null=True)),
                ("cleaned_at", models.DateTimeField(null=True)),
                ("logs_purged_at", models.DateTimeField(null=True)),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="jobs", to="clusters.cluster"
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="jobs", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "queue",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="jobs", to="queues.queue"
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="jobs", to="tenancy.tenant"
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["tenant", "-submitted_at"], name="job_by_tenant"),
                    models.Index(fields=["queue", "phase"], name="job_by_queue"),
                    models.Index(
                        condition=models.Q(
                            ("phase__in", ["aborted", "completed", "failed", "terminated"]), _negated=True
                        ),
                        fields=["cluster", "id"],
                        name="job_alive",
                    ),
                    models.Index(
                        condition=models.Q(("deleted_at__isnull", False)),
                        fields=["cluster", "deleted_at"],
                        name="job_deleted",
                    ),
                    models.Index(
                        condition=models.Q(("deleted_at__isnull", True)),
                        fields=["-submitted_at", "-id"],
                        name="job_by_time",
                    ),
                    models.Index(
                        condition=models.Q(("deleted_at__isnull", True)), fields=["name", "id"], name="job_by_name"
                    ),
                    models.Index(
                        condition=models.Q(("deleted_at__isnull", True)),
                        fields=["priority", "id"],
                        name="job_by_priority",
                    ),
                    models.Index(
                        condition=models.Q(("deleted_at__isnull", True)), fields=["replicas", "id"], name="job_by_pods"
                    ),
                    models.Index(
                        condition=models.Q(("deleted_at__isnull", True)), fields=["finished_at"], name="job_by_end"
                    ),
                    models.Index(
                        condition=models.Q(("deleted_at__isnull", True)),
                        fields=["phase", "-submitted_at", "-id"],
                        name="job_by_phase",
                    ),
                    models.Index(
                        condition=models.Q(("deleted_at__isnull", True)), fields=["queue", "phase"], name="job_of_queue"
                    ),
                    models.Index(
                        condition=models.Q(("deleted_at__isnull", True)),
                        fields=["tenant", "phase"],
                        name="job_of_tenant",
                    ),
                    models.Index(
                        condition=models.Q(("deleted_at__isnull", True)), fields=["owner", "phase"], name="job_of_owner"
                    ),
                    models.Index(
                        condition=models.Q(("deleted_at__isnull", True)), fields=["kind", "phase"], name="job_of_kind"
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("deleted_at__isnull", True)),
                        fields=("tenant", "name"),
                        name="one_job_of_a_name",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Pod",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("task", models.CharField(max_length=63)),
                ("index", models.PositiveIntegerField()),
                ("attempt", models.PositiveIntegerField()),
                ("version", models.PositiveIntegerField()),
                ("slot", models.PositiveBigIntegerField()),
                ("address", models.CharField(max_length=120)),
                (
                    "phase",
                    models.CharField(
                        choices=[
                            ("pending", "pending"),
                            ("bound", "bound"),
                            ("preparing", "preparing"),
                            ("running", "running"),
                            ("succeeded", "succeeded"),
                            ("failed", "failed"),
                            ("lost", "lost"),
                        ],
                        default=hekla.domain.phases.PodPhase["PENDING"],
                        max_length=16,
                    ),
                ),
                ("node", models.CharField(blank=True, max_length=253)),
                ("stopping", models.BooleanField(default=False)),
                ("evicted", models.BooleanField(default=False)),
                ("stop_reason", models.CharField(blank=True, max_length=200)),
                ("reason", models.CharField(blank=True, max_length=64)),
                ("message", models.TextField(blank=True)),
                ("exit_code", models.IntegerField(null=True)),
                ("created_at", models.DateTimeField()),
                ("bound_at", models.DateTimeField(null=True)),
                ("started_at", models.DateTimeField(null=True)),
                ("finished_at", models.DateTimeField(null=True)),
                (
                    "job",
                    models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="pods", to="jobs.job"),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("phase__in", ["failed", "lost", "succeeded"]), _negated=True),
                        fields=["job"],
                        name="pod_alive",
                    ),
                    models.Index(condition=models.Q(("phase", "failed")), fields=["job"], name="pod_failed"),
                    models.Index(
                        condition=models.Q(("reason", ""), _negated=True),
                        fields=["reason", "job"],
                        name="pod_by_reason",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("job", "task", "index", "attempt"), name="one_pod_of_a_key")
                ],
            },
        ),
        migrations.CreateModel(
            name="SavedView",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=60)),
                ("query", models.CharField(max_length=1000)),
                ("created_at", models.DateTimeField()),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="tenancy.tenant"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("tenant__isnull", True)),
                        fields=("owner", "name"),
                        name="one_own_view_of_a_name",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("tenant__isnull", False)),
                        fields=("tenant", "name"),
                        name="one_shared_view_of_a_name",
                    ),
                ]
            },
        ),
        migrations.CreateModel(
            name="JobListSettings",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("columns", models.JSONField(default=list)),
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "opens_with",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to="jobs.savedview"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Placement",
            fields=[
                (
                    "job",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="placement",
                        serialize=False,
                        to="jobs.job",
                    ),
                ),
                ("candidates", models.JSONField(default=list)),
                ("moves", models.PositiveIntegerField(default=0)),
                ("at", models.DateTimeField()),
                (
                    "federated_queue",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="queues.federatedqueue",
                    ),
                ),
            ],
        ),
        migrations.RunSQL(
            "CREATE INDEX job_by_letters ON jobs_job USING gin (hekla_grams(upper(name::text)))",
            reverse_sql="DROP INDEX job_by_letters",
        ),
    ]
