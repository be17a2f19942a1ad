from django.db import migrations, models

_CLASSES = ("useful", "idle", "unmeasured", "gang", "preempted", "retried", "failed")


def _key(*names: str) -> models.CompositePrimaryKey:
    return models.CompositePrimaryKey(*names, blank=True, editable=False, primary_key=True, serialize=False)


def _costs() -> list[tuple[str, models.Field]]:
    return [
        ("level", models.SmallIntegerField()),
        ("at", models.DateTimeField()),
        ("cluster_id", models.BigIntegerField()),
        ("resource", models.CharField(max_length=8)),
        ("model", models.CharField(max_length=253)),
        *((name, models.BigIntegerField(default=0)) for name in ("held", *_CLASSES)),
    ]


class Migration(migrations.Migration):
    dependencies = [
        ("measures", "0008_fill_part_job_sums"),
    ]

    operations = [
        migrations.AddField(model_name="gpuholding", name="cpu", field=models.BigIntegerField(db_default=0, default=0)),
        migrations.AddField(
            model_name="gpuholding", name="memory", field=models.BigIntegerField(db_default=0, default=0)
        ),
        migrations.AddField(
            model_name="measuredcluster", name="has_gpus", field=models.BooleanField(db_default=True, default=True)
        ),
        migrations.CreateModel(
            name="HolderCost",
            fields=[
                (
                    "pk",
                    _key(
                        *("level", "cluster_id", "at", "queue_id", "tenant_id", "owner_id", "kind", "resource", "model")
                    ),
                ),
                *_costs(),
                ("queue_id", models.BigIntegerField()),
                ("tenant_id", models.BigIntegerField()),
                ("owner_id", models.BigIntegerField()),
                ("kind", models.CharField(max_length=32)),
            ],
            options={
                "abstract": False,
                "indexes": [
                    models.Index(fields=["level", "at"], name="holder_cost_by_age"),
                    models.Index(fields=["tenant_id", "level", "at"], name="holder_cost_of_tenant"),
                ],
            },
        ),
        migrations.CreateModel(
            name="PartCost",
            fields=[
                ("pk", _key("level", "cluster_id", "by", "at", "key", "resource", "model")),
                *_costs(),
                ("by", models.CharField(max_length=8)),
                ("key", models.CharField(blank=True, max_length=32)),
            ],
            options={
                "abstract": False,
                "indexes": [models.Index(fields=["level", "at"], name="part_cost_by_age")],
            },
        ),
    ]
