import django.core.validators
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("jobs", "0009_file_upload"),
        ("tenancy", "0001_initial"),
        ("workbench", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="JobIdleness",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("warned_at", models.DateTimeField(default=None, null=True)),
                ("ends_at", models.DateTimeField(default=None, null=True)),
                ("keep_until", models.DateTimeField(default=None, null=True)),
                ("keep_reason", models.CharField(blank=True, default="", max_length=200)),
                (
                    "job",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="idleness", to="jobs.job"
                    ),
                ),
            ],
            options={
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="SessionIdleness",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("warned_at", models.DateTimeField(default=None, null=True)),
                ("ends_at", models.DateTimeField(default=None, null=True)),
                ("keep_until", models.DateTimeField(default=None, null=True)),
                ("keep_reason", models.CharField(blank=True, default="", max_length=200)),
                (
                    "session",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="idleness", to="workbench.toolsession"
                    ),
                ),
            ],
            options={
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="IdlePolicy",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("ends_sessions", models.BooleanField(default=False)),
                (
                    "idle_minutes",
                    models.PositiveIntegerField(
                        default=120,
                        validators=[
                            django.core.validators.MinValueValidator(5),
                            django.core.validators.MaxValueValidator(4320),
                        ],
                    ),
                ),
                (
                    "grace_minutes",
                    models.PositiveIntegerField(
                        default=30,
                        validators=[
                            django.core.validators.MinValueValidator(5),
                            django.core.validators.MaxValueValidator(1440),
                        ],
                    ),
                ),
                (
                    "cpu_percent",
                    models.PositiveIntegerField(
                        blank=True,
                        default=20,
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(100000),
                        ],
                    ),
                ),
                (
                    "gpu_percent",
                    models.PositiveIntegerField(
                        blank=True,
                        default=5,
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(100000),
                        ],
                    ),
                ),
                (
                    "network_kib",
                    models.PositiveIntegerField(
                        blank=True,
                        default=None,
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(10000000),
                        ],
                    ),
                ),
                (
                    "gpu_job_minutes",
                    models.PositiveIntegerField(
                        blank=True,
                        default=None,
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(10),
                            django.core.validators.MaxValueValidator(720),
                        ],
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="tenancy.tenant",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant",), name="one_idle_policy_of_a_tenant", nulls_distinct=False
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="SessionMinute",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "session_id", "at", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("at", models.DateTimeField()),
                ("requests", models.BigIntegerField(db_default=0, default=0)),
                ("input", models.BigIntegerField(db_default=0, default=0)),
                ("terminal", models.BigIntegerField(db_default=0, default=0)),
                ("ssh", models.BigIntegerField(db_default=0, default=0)),
                ("network_bytes", models.BigIntegerField(db_default=0, default=0)),
                ("kernel", models.IntegerField(null=True)),
                ("cpu", models.IntegerField(null=True)),
                ("gpu", models.IntegerField(null=True)),
                (
                    "session",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="workbench.toolsession",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["at"], name="session_minute_by_age")],
            },
        ),
    ]
