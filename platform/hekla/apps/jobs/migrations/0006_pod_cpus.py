from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0005_job_restart_at"),
    ]

    operations = [
        migrations.AddField(
            model_name="pod",
            name="cpus",
            field=models.TextField(blank=True, db_default="", default=""),
        ),
    ]
