import django.core.validators
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import hekla.apps.accounts.roles


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Department",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("slug", models.SlugField(max_length=40, unique=True, verbose_name="short name")),
                ("name", models.CharField(max_length=120, verbose_name="name")),
                ("description", models.TextField(blank=True, max_length=2000, verbose_name="description")),
                ("created_at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="Tenant",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("slug", models.SlugField(max_length=40, unique=True, verbose_name="short name")),
                ("name", models.CharField(max_length=120, verbose_name="name")),
                ("description", models.TextField(blank=True, max_length=2000, verbose_name="description")),
                ("is_active", models.BooleanField(default=True, verbose_name="active")),
                (
                    "log_days",
                    models.PositiveIntegerField(
                        default=30,
                        validators=[django.core.validators.MaxValueValidator(3650)],
                        verbose_name="log retention (days)",
                    ),
                ),
                (
                    "history_days",
                    models.PositiveIntegerField(
                        default=365,
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(3650),
                        ],
                        verbose_name="history retention (days)",
                    ),
                ),
                ("created_at", models.DateTimeField()),
                (
                    "department",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="tenants",
                        to="tenancy.department",
                        verbose_name="department",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("history_days__gte", models.F("log_days"))), name="history_outlives_logs"
                    )
                ]
            },
        ),
        migrations.CreateModel(
            name="Membership",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "role",
                    models.CharField(
                        choices=[("admin", "Admin"), ("member", "Member"), ("viewer", "Viewer")],
                        default=hekla.apps.accounts.roles.TenantRole["MEMBER"],
                        max_length=16,
                        verbose_name="role",
                    ),
                ),
                ("since", models.DateTimeField()),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="memberships",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="memberships", to="tenancy.tenant"
                    ),
                ),
            ],
            options={"constraints": [models.UniqueConstraint(fields=("tenant", "user"), name="one_membership")]},
        ),
        migrations.CreateModel(
            name="DepartmentHead",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("since", models.DateTimeField()),
                (
                    "department",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="heads", to="tenancy.department"
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="headed_departments",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("department", "user"), name="one_headship")],
            },
        ),
    ]
