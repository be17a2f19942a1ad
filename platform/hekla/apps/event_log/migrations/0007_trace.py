from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("event_log", "0006_event_of_people_by_time")]

    operations = [
        migrations.AddField("loggedevent", "trace", models.CharField(db_default="", default="", max_length=55)),
    ]
