import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("clusters", "0007_node_usage"),
    ]

    operations = [
        migrations.CreateModel(
            name="ClusterObject",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("kind", models.CharField(max_length=40)),
                ("name", models.CharField(max_length=600)),
                ("digest", models.CharField(max_length=32)),
                ("body", models.JSONField(default=dict)),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="clusters.cluster"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("cluster", "kind", "name"), name="one_object_of_a_name")
                ],
            },
        ),
    ]
