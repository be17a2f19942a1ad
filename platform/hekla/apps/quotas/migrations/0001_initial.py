import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("tenancy", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Quota",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "of",
                    models.CharField(
                        choices=[("tenant", "tenant"), ("each", "each member"), ("one", "one member")], max_length=8
                    ),
                ),
                ("jobs", models.PositiveIntegerField(null=True, verbose_name="unfinished jobs")),
                ("sessions", models.PositiveIntegerField(null=True, verbose_name="debugging sessions")),
                ("gpu_hours", models.PositiveIntegerField(null=True, verbose_name="GPU-hours per month")),
                ("resources", models.JSONField(default=dict, verbose_name="resources in use")),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="quotas", to="tenancy.tenant"
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="quotas",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "of", "user"), name="one_quota_of_each", nulls_distinct=False
                    )
                ],
            },
        ),
    ]
