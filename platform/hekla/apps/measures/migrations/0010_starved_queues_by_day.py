from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("measures", "0009_costs"),
    ]

    operations = [
        migrations.CreateModel(
            name="StarvedQueueDay",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "cluster_id",
                        "at",
                        "resource",
                        "queue_id",
                        "other_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("cluster_id", models.BigIntegerField()),
                ("at", models.DateTimeField()),
                ("resource", models.CharField(max_length=253)),
                ("queue_id", models.BigIntegerField()),
                ("other_id", models.BigIntegerField()),
                ("milliseconds", models.BigIntegerField()),
                ("first_at", models.DateTimeField()),
                ("last_at", models.DateTimeField()),
            ],
            options={
                "indexes": [models.Index(fields=["at"], name="starved_queue_day_by_age")],
                "abstract": False,
            },
        ),
    ]
