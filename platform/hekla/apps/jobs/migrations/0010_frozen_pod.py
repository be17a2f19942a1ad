import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("jobs", "0009_file_upload")]

    operations = [
        migrations.CreateModel(
            name="FrozenPod",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("until", models.DateTimeField()),
                ("size", models.BigIntegerField(default=None, null=True)),
                ("released_at", models.DateTimeField(default=None, null=True)),
                ("cleaned_at", models.DateTimeField(default=None, null=True)),
                (
                    "debug_job",
                    models.ForeignKey(
                        default=None,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="jobs.job",
                    ),
                ),
                (
                    "pod",
                    models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name="+", to="jobs.pod"),
                ),
            ],
            options={
                "indexes": [
                    models.Index(condition=models.Q(("cleaned_at", None)), fields=["until"], name="frozen_pod_to_clean")
                ],
            },
        ),
    ]
