from django.db import migrations

_LIST = """
INSERT INTO usage_jobfolder (job_id, tenant_id, size, files, is_complete, due_at)
SELECT job.id, job.tenant_id, 0, 0, true, now() FROM jobs_job job JOIN clusters_cluster cluster ON cluster.id = job.cluster_id
WHERE cluster.kind = 'local' AND job.started_at IS NOT NULL AND job.cleaned_at IS NULL
"""


class Migration(migrations.Migration):
    dependencies = [("usage", "0002_job_folder")]
    harmless = "Rows in a table that the version before does not know."

    operations = [migrations.RunSQL(_LIST, migrations.RunSQL.noop)]
