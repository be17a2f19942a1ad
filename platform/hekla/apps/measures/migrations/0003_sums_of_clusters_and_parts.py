from django.db import migrations, models

_HELD = ("useful", "idle", "unmeasured", "gang", "preempted", "retried", "failed")


def _amounts(names: tuple[str, ...]) -> list[tuple[str, models.Field]]:
    return [(name, models.BigIntegerField(default=0)) for name in names]


class Migration(migrations.Migration):
    dependencies = [
        ("measures", "0002_holdings_by_time"),
    ]

    operations = [
        migrations.CreateModel(
            name="ClusterGpuTime",
            fields=[
                ("level", models.SmallIntegerField()),
                ("at", models.DateTimeField()),
                ("cluster_id", models.BigIntegerField()),
                ("model", models.CharField(max_length=253)),
                *_amounts(_HELD),
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "level",
                        "cluster_id",
                        "at",
                        "model",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                *_amounts(("free", "drained", "down", "beyond")),
            ],
            options={
                "indexes": [models.Index(fields=["level", "at"], name="cluster_gpu_time_by_age")],
            },
        ),
        migrations.CreateModel(
            name="PartGpuTime",
            fields=[
                ("level", models.SmallIntegerField()),
                ("at", models.DateTimeField()),
                ("cluster_id", models.BigIntegerField()),
                ("model", models.CharField(max_length=253)),
                *_amounts(_HELD),
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "level",
                        "cluster_id",
                        "by",
                        "at",
                        "key",
                        "model",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("by", models.CharField(max_length=8)),
                ("key", models.CharField(max_length=32)),
            ],
            options={
                "indexes": [models.Index(fields=["level", "at"], name="part_gpu_time_by_age")],
            },
        ),
    ]
