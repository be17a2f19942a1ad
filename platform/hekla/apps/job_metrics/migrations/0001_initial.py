import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("jobs", "0007_job_to_expire"),
    ]

    operations = [
        migrations.CreateModel(
            name="MetricCursor",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.BigIntegerField()),
            ],
        ),
        migrations.CreateModel(
            name="MetricLog",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("offset", models.BigIntegerField(default=0)),
                ("summary", models.JSONField(default=dict)),
                ("points", models.JSONField(default=dict)),
                ("is_complete", models.BooleanField(default=False)),
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
                    models.Index(condition=models.Q(("is_complete", False)), fields=["due_at"], name="job_metrics_due")
                ],
            },
        ),
    ]
