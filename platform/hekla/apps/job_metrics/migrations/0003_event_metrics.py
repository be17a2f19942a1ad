import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("job_metrics", "0002_begin_at_the_newest_event"),
        ("jobs", "0009_file_upload"),
    ]

    operations = [
        migrations.CreateModel(
            name="EventMetrics",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("files", models.JSONField(default=dict)),
                ("folders", models.JSONField(default=dict)),
                ("summary", models.JSONField(default=dict)),
                ("points", models.JSONField(default=dict)),
                ("is_complete", models.BooleanField(default=False)),
                ("found_at", models.DateTimeField(null=True)),
                ("read_at", models.DateTimeField(null=True)),
                ("due_at", models.DateTimeField()),
                (
                    "job",
                    models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="+", to="jobs.job"),
                ),
                (
                    "pod",
                    models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name="+", to="jobs.pod"),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("is_complete", False)), fields=["due_at"], name="event_metrics_due"
                    )
                ],
            },
        ),
    ]
