from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    # An index cannot be built concurrently in a transaction.
    atomic = False

    dependencies = [
        ("jobs", "0003_pod_cards"),
    ]

    operations = [
        AddIndexConcurrently(
            model_name="pod",
            index=models.Index(
                condition=models.Q(("cards", []), _negated=True)
                & models.Q(("phase__in", ["bound", "preparing", "running"])),
                fields=["node"],
                name="pod_with_cards",
            ),
        ),
    ]
