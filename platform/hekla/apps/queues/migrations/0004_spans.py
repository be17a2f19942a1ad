import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("queues", "0003_state"),
        ("tenancy", "0003_departments"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Span",
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
                ("members", models.ManyToManyField(related_name="spans", to="queues.queue", verbose_name="queues")),
                (
                    "tenants",
                    models.ManyToManyField(
                        blank=True, related_name="spans", to="tenancy.tenant", verbose_name="tenants"
                    ),
                ),
            ],
        ),
    ]
