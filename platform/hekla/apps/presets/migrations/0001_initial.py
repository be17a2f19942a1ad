import uuid

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
            name="Preset",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("uid", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ("name", models.CharField(max_length=60)),
                ("spec", models.JSONField()),
                ("is_default", models.BooleanField(default=False)),
                ("created_at", models.DateTimeField()),
                ("changed_at", models.DateTimeField()),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.PROTECT, related_name="+", to="tenancy.tenant"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("tenant__isnull", True)),
                        fields=("owner", "name"),
                        name="one_own_preset_of_a_name",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("tenant__isnull", False)),
                        fields=("tenant", "name"),
                        name="one_tenant_preset_of_a_name",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("is_default", True), ("tenant__isnull", True)),
                        fields=("owner",),
                        name="one_own_default_preset",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("is_default", True), ("tenant__isnull", False)),
                        fields=("tenant",),
                        name="one_tenant_default_preset",
                    ),
                ],
            },
        ),
    ]
