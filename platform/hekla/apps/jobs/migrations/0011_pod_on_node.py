from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    # An index cannot be built concurrently in a transaction.
    atomic = False

    dependencies = [
        ("jobs", "0010_frozen_pod"),
    ]

    operations = [
        AddIndexConcurrently(
            model_name="pod",
            index=models.Index(
                condition=models.Q(("phase__in", ["bound", "preparing", "running"])),
                fields=["node"],
                name="pod_on_node",
            ),
        ),
        RemoveIndexConcurrently(model_name="pod", name="pod_with_cards"),
    ]
