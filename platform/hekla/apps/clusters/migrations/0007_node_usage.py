import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("clusters", "0006_node_topology"),
    ]

    operations = [
        migrations.CreateModel(
            name="NodeUsageRow",
            fields=[
                (
                    "node",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="usage",
                        serialize=False,
                        to="clusters.node",
                    ),
                ),
                ("at", models.DateTimeField()),
                ("cpu", models.FloatField()),
                ("memory", models.FloatField()),
                ("whole_cpu", models.BigIntegerField()),
                ("whole_memory", models.BigIntegerField()),
                ("cards", models.JSONField(default=list)),
            ],
        ),
    ]
