import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("clusters", "0001_initial"),
        ("jobs", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="ExternalGroup",
            fields=[
                (
                    "job",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="external",
                        serialize=False,
                        to="jobs.job",
                    ),
                ),
                ("key", models.CharField(max_length=600)),
                ("maker", models.CharField(blank=True, max_length=64)),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="clusters.cluster"
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["cluster", "key"], name="external_group_by_key")],
            },
        ),
        migrations.CreateModel(
            name="ExternalPodRow",
            fields=[
                (
                    "pod",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="external",
                        serialize=False,
                        to="jobs.pod",
                    ),
                ),
                ("uid", models.CharField(max_length=64)),
                ("namespace", models.CharField(max_length=63)),
                ("name", models.CharField(max_length=253)),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="clusters.cluster"
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("cluster", "uid"), name="one_row_of_an_object")],
            },
        ),
    ]
