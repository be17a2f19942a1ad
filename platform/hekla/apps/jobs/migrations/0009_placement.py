import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0008_never_preempts"),
        ("queues", "0004_spans"),
    ]

    operations = [
        migrations.CreateModel(
            name="Placement",
            fields=[
                (
                    "job",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="placement",
                        serialize=False,
                        to="jobs.job",
                    ),
                ),
                ("asked", models.JSONField(default=list)),
                ("moves", models.PositiveIntegerField(default=0)),
                ("at", models.DateTimeField()),
                (
                    "span",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to="queues.span"
                    ),
                ),
            ],
        ),
    ]
