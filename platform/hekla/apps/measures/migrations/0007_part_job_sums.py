from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("measures", "0006_queue_shares"),
    ]

    operations = [
        migrations.CreateModel(
            name="PartJobSum",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "level",
                        "cluster_id",
                        "by",
                        "key",
                        "at",
                        "what",
                        "part",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("level", models.SmallIntegerField()),
                ("cluster_id", models.BigIntegerField()),
                ("by", models.CharField(max_length=12)),
                ("key", models.CharField(max_length=512)),
                ("at", models.DateTimeField()),
                ("what", models.CharField(max_length=12)),
                ("part", models.CharField(max_length=12)),
                ("count", models.BigIntegerField()),
                ("milliseconds", models.BigIntegerField()),
            ],
            options={
                "indexes": [
                    models.Index(fields=["level", "at"], name="part_job_sum_by_age"),
                    models.Index(
                        fields=["level", "by", "what", "at"],
                        include=("cluster_id", "key", "count"),
                        name="part_job_sum_by_kind",
                    ),
                ],
            },
        ),
        migrations.AddIndex(
            model_name="jobsum",
            index=models.Index(fields=["queue_id", "level", "at"], name="job_sum_of_queue"),
        ),
        migrations.AddIndex(
            model_name="jobsum",
            index=models.Index(fields=["owner_id", "level", "at"], name="job_sum_of_owner"),
        ),
        migrations.AddIndex(
            model_name="jobmoment",
            index=models.Index(
                fields=["what", "milliseconds"],
                condition=models.Q(("milliseconds__gt", 0)),
                name="job_moment_by_wait",
            ),
        ),
        migrations.AddIndex(
            model_name="jobmoment",
            index=models.Index(fields=["tenant_id", "what", "at"], name="job_moment_of_tenant"),
        ),
        migrations.AddIndex(
            model_name="jobmoment",
            index=models.Index(
                fields=["queue_id", "at"], condition=models.Q(("what", "failed")), name="job_moment_of_queue"
            ),
        ),
    ]
