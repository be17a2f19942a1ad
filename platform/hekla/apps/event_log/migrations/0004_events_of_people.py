from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("event_log", "0003_events_of_a_jobs_course"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="event",
            index=models.Index(
                condition=models.Q(("actor_id__isnull", False)), fields=["actor_name", "id"], name="event_of_person"
            ),
        ),
        migrations.AddIndex(
            model_name="event",
            index=models.Index(condition=models.Q(("actor_id__isnull", False)), fields=["id"], name="event_of_people"),
        ),
    ]
