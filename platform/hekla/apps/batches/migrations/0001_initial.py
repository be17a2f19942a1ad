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
            name="Batch",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("uid", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ("name", models.CharField(max_length=40)),
                ("kind", models.CharField(choices=[("sweep", "Sweep"), ("file", "File")], max_length=8)),
                ("spec", models.JSONField(default=dict)),
                ("submitted_at", models.DateTimeField()),
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
                "indexes": [models.Index(fields=["tenant", "-submitted_at"], name="batch_by_tenant")],
                "constraints": [models.UniqueConstraint(fields=("tenant", "name"), name="one_batch_of_a_name")],
            },
        ),
        migrations.CreateModel(
            name="BatchJob",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveIntegerField()),
                ("attempt", models.PositiveIntegerField(default=1)),
                ("parameters", models.JSONField(default=dict)),
                (
                    "batch",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="members", to="batches.batch"
                    ),
                ),
                (
                    "job",
                    models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name="+", to="jobs.job"),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("batch", "number", "attempt"), name="one_job_of_an_attempt")
                ]
            },
        ),
    ]
