from django.db import migrations, models


def _amounts() -> list[tuple[str, models.Field]]:
    names = ("deserved", "allocated", "waiting", "borrowed", "lent")
    return [
        ("cluster_id", models.BigIntegerField()),
        ("queue_id", models.BigIntegerField()),
        ("resource", models.CharField(max_length=253)),
        ("is_inner", models.BooleanField(default=False)),
        *((name, models.BigIntegerField(default=0)) for name in names),
    ]


class Migration(migrations.Migration):
    dependencies = [
        ("measures", "0005_jobs"),
    ]

    operations = [
        migrations.CreateModel(
            name="MeasuredQueues",
            fields=[
                ("cluster_id", models.BigIntegerField(primary_key=True, serialize=False)),
                ("looked_at", models.DateTimeField()),
                ("until", models.DateTimeField()),
                ("due_at", models.DateTimeField(db_index=True)),
            ],
        ),
        migrations.CreateModel(
            name="QueueShareSpan",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                *_amounts(),
                ("begin_at", models.DateTimeField()),
                ("end_at", models.DateTimeField(null=True)),
            ],
            options={
                "abstract": False,
                "indexes": [models.Index(fields=["cluster_id", "end_at"], name="queue_share_by_end")],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("end_at", None)),
                        fields=("cluster_id", "queue_id", "resource"),
                        name="one_present_queue_share",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="QueueShareTime",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "level",
                        "cluster_id",
                        "at",
                        "queue_id",
                        "resource",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                *_amounts(),
                ("level", models.SmallIntegerField()),
                ("at", models.DateTimeField()),
            ],
            options={
                "abstract": False,
                "indexes": [models.Index(fields=["level", "at"], name="queue_share_time_by_age")],
            },
        ),
        migrations.CreateModel(
            name="StarvedQueueTime",
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
                "indexes": [models.Index(fields=["at"], name="starved_queue_by_age")],
            },
        ),
    ]
