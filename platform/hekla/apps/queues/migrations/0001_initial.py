import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("clusters", "0001_initial"),
        ("tenancy", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Queue",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.SlugField(max_length=63, unique=True, verbose_name="name")),
                ("description", models.CharField(blank=True, max_length=300, verbose_name="description")),
                ("weight", models.PositiveIntegerField(default=1, verbose_name="weight")),
                ("priority", models.PositiveIntegerField(default=0, verbose_name="priority")),
                ("capability", models.JSONField(blank=True, default=dict, verbose_name="limit")),
                ("guarantee", models.JSONField(blank=True, default=dict, verbose_name="guaranteed")),
                ("deserved", models.JSONField(blank=True, default=dict, verbose_name="deserved")),
                ("reclaimable", models.BooleanField(default=True, verbose_name="reclaimable")),
                (
                    "state",
                    models.CharField(
                        choices=[("open", "open"), ("draining", "draining"), ("closed", "closed")],
                        default="open",
                        max_length=16,
                        verbose_name="state",
                    ),
                ),
                ("state_at", models.DateTimeField(null=True)),
                ("changed_at", models.DateTimeField()),
                ("created_at", models.DateTimeField()),
                (
                    "changed_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="queues",
                        to="clusters.cluster",
                        verbose_name="cluster",
                    ),
                ),
                (
                    "parent",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="children",
                        to="queues.queue",
                        verbose_name="parent",
                    ),
                ),
                (
                    "state_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "tenants",
                    models.ManyToManyField(
                        blank=True, related_name="queues", to="tenancy.tenant", verbose_name="tenants"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="FederatedQueue",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.SlugField(max_length=63, unique=True, verbose_name="name")),
                ("description", models.CharField(blank=True, max_length=300, verbose_name="description")),
                ("changed_at", models.DateTimeField()),
                ("created_at", models.DateTimeField()),
                (
                    "changed_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "members",
                    models.ManyToManyField(related_name="federated_queues", to="queues.queue", verbose_name="queues"),
                ),
                (
                    "tenants",
                    models.ManyToManyField(
                        blank=True, related_name="federated_queues", to="tenancy.tenant", verbose_name="tenants"
                    ),
                ),
            ],
        ),
    ]
