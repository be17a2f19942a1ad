import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("jobs", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="Forecast",
            fields=[
                (
                    "job",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="jobs.job",
                    ),
                ),
                ("made_at", models.DateTimeField()),
                ("earliest_at", models.DateTimeField(null=True)),
                ("latest_at", models.DateTimeField(null=True)),
            ],
        ),
    ]
