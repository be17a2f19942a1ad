import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("batches", "0001_initial"),
        ("jobs", "0006_pod_cpus"),
        ("tenancy", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="MetricLog",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("offset", models.BigIntegerField(default=0)),
                ("summary", models.JSONField(default=dict)),
                ("points", models.JSONField(default=dict)),
                ("is_complete", models.BooleanField(default=False)),
                ("due_at", models.DateTimeField()),
            ],
            options={
                "indexes": [
                    models.Index(condition=models.Q(("is_complete", False)), fields=["due_at"], name="metric_log_due")
                ]
            },
        ),
        migrations.AddField(
            model_name="batch",
            name="ended_at",
            field=models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), default=None, null=True),
        ),
        migrations.AddField(
            model_name="batchjob",
            name="is_read",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddIndex(
            model_name="batch",
            index=models.Index(condition=models.Q(("ended_at__isnull", True)), fields=["id"], name="batch_unended"),
        ),
        migrations.AddIndex(
            model_name="batchjob",
            index=models.Index(condition=models.Q(("is_read", False)), fields=["job"], name="batch_job_unread"),
        ),
        migrations.AddField(
            model_name="metriclog",
            name="member",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="+", to="batches.batchjob"
            ),
        ),
        migrations.AddField(
            model_name="metriclog",
            name="pod",
            field=models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name="+", to="jobs.pod"),
        ),
    ]
