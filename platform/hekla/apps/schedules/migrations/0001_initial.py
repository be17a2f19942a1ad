import uuid

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("jobs", "0001_initial"),
        ("tenancy", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Schedule",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("uid", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ("name", models.CharField(max_length=40)),
                ("spec", models.JSONField()),
                ("is_suspended", models.BooleanField(default=False)),
                ("looked_at", models.DateTimeField()),
                ("next_at", models.DateTimeField(null=True)),
                ("created_at", models.DateTimeField()),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="tenancy.tenant"
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("is_suspended", False)), fields=["next_at"], name="schedule_by_next_time"
                    )
                ],
                "constraints": [models.UniqueConstraint(fields=("tenant", "name"), name="one_schedule_of_a_name")],
            },
        ),
        migrations.CreateModel(
            name="ScheduleRun",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("due_at", models.DateTimeField()),
                ("by_hand", models.BooleanField(default=False)),
                (
                    "outcome",
                    models.CharField(
                        choices=[("started", "Started"), ("skipped", "Skipped"), ("missed", "Missed")], max_length=8
                    ),
                ),
                (
                    "reason",
                    models.CharField(
                        blank=True,
                        choices=[("still_running", "still_running"), ("too_late", "too_late"), ("refused", "refused")],
                        max_length=16,
                    ),
                ),
                ("message", models.TextField(blank=True)),
                ("until", models.DateTimeField(null=True)),
                ("count", models.PositiveIntegerField(default=1)),
                (
                    "job",
                    models.OneToOneField(
                        null=True, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="jobs.job"
                    ),
                ),
                (
                    "schedule",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="runs", to="schedules.schedule"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("schedule", "due_at", "by_hand"), name="one_outcome_of_a_time")
                ]
            },
        ),
    ]
