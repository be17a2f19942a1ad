"""Indexes by which a list of a hundred thousand jobs is narrowed, sorted and counted.

Names are found by any part of them: `hekla_grams` gives every three letters in a row, which an index holds. The
extension that does so is not among what every PostgreSQL brings.
"""

from django.db import migrations, models

_GRAMS = """
CREATE FUNCTION hekla_grams(name text) RETURNS text[] LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT array_agg(DISTINCT substr(name, place, 3)) FROM generate_series(1, length(name) - 2) AS place
$$
"""
_KEPT = models.Q(deleted_at__isnull=True)


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0005_messages_as_facts"),
    ]

    operations = [
        migrations.RunSQL(_GRAMS, reverse_sql="DROP FUNCTION hekla_grams(text)"),
        migrations.RunSQL(
            "CREATE INDEX job_by_letters ON jobs_job USING gin (hekla_grams(upper(name::text)))",
            reverse_sql="DROP INDEX job_by_letters",
        ),
        migrations.AddIndex("job", models.Index(fields=["-submitted_at", "-id"], condition=_KEPT, name="job_by_time")),
        migrations.AddIndex("job", models.Index(fields=["name", "id"], condition=_KEPT, name="job_by_name")),
        migrations.AddIndex("job", models.Index(fields=["priority", "id"], condition=_KEPT, name="job_by_priority")),
        migrations.AddIndex("job", models.Index(fields=["replicas", "id"], condition=_KEPT, name="job_by_pods")),
        migrations.AddIndex(
            "job", models.Index(fields=["phase", "-submitted_at", "-id"], condition=_KEPT, name="job_by_phase")
        ),
        migrations.AddIndex("job", models.Index(fields=["queue", "phase"], condition=_KEPT, name="job_of_queue")),
        migrations.AddIndex("job", models.Index(fields=["tenant", "phase"], condition=_KEPT, name="job_of_tenant")),
        migrations.AddIndex("job", models.Index(fields=["owner", "phase"], condition=_KEPT, name="job_of_owner")),
        migrations.AddIndex("job", models.Index(fields=["kind", "phase"], condition=_KEPT, name="job_of_kind")),
        migrations.AddIndex(
            "job", models.Index(fields=["finished_at"], condition=models.Q(deleted_at__isnull=True), name="job_by_end")
        ),
        migrations.AddIndex("pod", models.Index(fields=["job"], condition=models.Q(phase="failed"), name="pod_failed")),
        migrations.AddIndex(
            "pod", models.Index(fields=["reason", "job"], condition=~models.Q(reason=""), name="pod_by_reason")
        ),
    ]
