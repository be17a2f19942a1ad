import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("jobs", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="Sample",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "pod_id", "span_seconds", "at", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("at", models.DateTimeField()),
                ("cpu_ms", models.BigIntegerField()),
                ("memory_bytes", models.BigIntegerField()),
                ("gpu_memory_bytes", models.BigIntegerField(null=True)),
                ("gpu_thousandths", models.IntegerField(null=True)),
                ("span_seconds", models.SmallIntegerField()),
                (
                    "pod",
                    models.ForeignKey(
                        db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="jobs.pod"
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["span_seconds", "at"], name="sample_by_age")],
            },
        ),
    ]
