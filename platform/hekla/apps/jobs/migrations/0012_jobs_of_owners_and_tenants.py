from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    # An index cannot be built concurrently in a transaction.
    atomic = False

    dependencies = [
        ("jobs", "0011_pod_on_node"),
    ]

    operations = [
        AddIndexConcurrently(
            model_name="job",
            index=models.Index(
                condition=models.Q(("deleted_at__isnull", True)),
                fields=["owner", "phase", "tenant"],
                name="job_of_owner_by_phase",
            ),
        ),
        AddIndexConcurrently(
            model_name="job",
            index=models.Index(
                condition=models.Q(("deleted_at__isnull", True)),
                fields=["owner", "-submitted_at", "-id"],
                name="job_of_owner_by_time",
            ),
        ),
        AddIndexConcurrently(
            model_name="job",
            index=models.Index(
                condition=models.Q(("deleted_at__isnull", True)),
                fields=["tenant", "phase", "id"],
                name="job_of_tenant_by_phase",
            ),
        ),
        RemoveIndexConcurrently(model_name="job", name="job_of_owner"),
        RemoveIndexConcurrently(model_name="job", name="job_of_tenant"),
    ]
