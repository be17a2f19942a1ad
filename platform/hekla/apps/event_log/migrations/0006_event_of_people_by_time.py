from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    # An index cannot be built concurrently in a transaction.
    atomic = False

    dependencies = [
        ("event_log", "0005_event_of_people_by_subject"),
    ]

    operations = [
        AddIndexConcurrently(
            model_name="loggedevent",
            index=models.Index(
                condition=models.Q(("actor_id__isnull", False)),
                fields=["at"],
                name="event_of_people_by_time",
            ),
        ),
    ]
