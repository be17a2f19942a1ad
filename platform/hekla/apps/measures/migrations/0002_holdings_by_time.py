from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    # An index cannot be built concurrently in a transaction.
    atomic = False

    dependencies = [
        ("measures", "0001_initial"),
    ]

    operations = [
        AddIndexConcurrently(
            model_name="gpuholding",
            index=models.Index(fields=["bound_at", "pod_id"], name="gpu_holding_by_begin"),
        ),
        AddIndexConcurrently(
            model_name="gpuholding",
            index=models.Index(fields=["finished_at"], name="gpu_holding_by_end"),
        ),
    ]
