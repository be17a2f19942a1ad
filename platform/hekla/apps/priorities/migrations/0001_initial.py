import django.core.validators
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("tenancy", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="PriorityClass",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.SlugField(max_length=63, unique=True, verbose_name="name")),
                (
                    "value",
                    models.IntegerField(
                        validators=[
                            django.core.validators.MinValueValidator(-1000000000),
                            django.core.validators.MaxValueValidator(1000000000),
                        ],
                        verbose_name="value",
                    ),
                ),
                ("description", models.TextField(blank=True, max_length=2000, verbose_name="description")),
                ("is_default", models.BooleanField(default=False, verbose_name="Default class")),
                ("never_preempts", models.BooleanField(default=False, verbose_name="never evicts other pods")),
                ("is_offered", models.BooleanField(default=True, verbose_name="available to new jobs")),
                ("created_at", models.DateTimeField()),
                (
                    "tenants",
                    models.ManyToManyField(
                        blank=True, related_name="priority_classes", to="tenancy.tenant", verbose_name="tenants"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("is_default", True)),
                        fields=("is_default",),
                        name="one_default_priority_class",
                    )
                ],
            },
        ),
    ]
