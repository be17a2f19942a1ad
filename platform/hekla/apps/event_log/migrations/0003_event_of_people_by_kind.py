from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models

# A build that was interrupted leaves an invalid index, so a second run begins by dropping it.
_DROP = "DROP INDEX CONCURRENTLY IF EXISTS event_by_letters"
_BY_LETTERS = """
CREATE INDEX CONCURRENTLY event_by_letters ON event_log_loggedevent
USING gin (hekla_grams(hekla_event_names(payload))) WHERE actor_id IS NOT NULL
"""


class Migration(migrations.Migration):
    # An index cannot be built concurrently in a transaction.
    atomic = False
    harmless = "An index, which the database keeps up whichever version writes."

    dependencies = [("event_log", "0002_event_names"), ("jobs", "0001_initial")]  # the latter has `hekla_grams`

    operations = [
        migrations.RunSQL([_DROP, _BY_LETTERS], reverse_sql=_DROP),
        AddIndexConcurrently(
            model_name="loggedevent",
            index=models.Index(
                condition=models.Q(("actor_id__isnull", False)), fields=["kind", "id"], name="event_of_people_by_kind"
            ),
        ),
    ]
