import uuid

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("policy_lab", "0002_problem_facts"),
    ]

    operations = [
        migrations.CreateModel(
            name="LabTrace",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("uid", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ("name", models.CharField(max_length=100)),
                ("format", models.CharField(max_length=20)),
                ("content", models.BinaryField()),
                ("size", models.PositiveIntegerField()),
                ("jobs", models.PositiveIntegerField()),
                ("pods", models.PositiveIntegerField()),
                ("starts_at", models.DateTimeField()),
                ("ends_at", models.DateTimeField()),
                ("queues", models.JSONField()),
                ("notes", models.JSONField()),
                ("first_unreadable", models.PositiveIntegerField(default=0)),
                ("created_at", models.DateTimeField()),
                (
                    "owner",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.AddField(
            model_name="labrun",
            name="trace",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="policy_lab.labtrace",
            ),
        ),
        migrations.AddField(
            model_name="labrun",
            name="trace_name",
            field=models.CharField(blank=True, db_default="", default="", max_length=100),
        ),
    ]
