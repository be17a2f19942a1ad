from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("event_log", "0003_event_of_people_by_kind"),
    ]

    operations = [
        migrations.AddField(
            model_name="loggedevent",
            name="session",
            field=models.CharField(db_default="", default="", max_length=150),
        ),
    ]
