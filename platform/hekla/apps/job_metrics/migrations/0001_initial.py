import django.db.models.deletion
from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor


def begin_at_the_newest_event(apps: Apps, _editor: BaseDatabaseSchemaEditor) -> None:
    """The logs of jobs that ended before are not read again."""
    newest = apps.get_model("event_log", "LoggedEvent").objects.order_by("-id").values_list("id", flat=True).first()
    if newest:
        apps.get_model("job_metrics", "MetricCursor").objects.create(pk=1, number=newest)


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("event_log", "0003_event_of_people_by_kind"),
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
        migrations.RunPython(begin_at_the_newest_event, migrations.RunPython.noop),
    ]
