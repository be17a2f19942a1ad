import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("clusters", "0009_node_draining"),
    ]

    operations = [
        migrations.AddField(
            model_name="clusterhealth",
            name="metrics_fault",
            field=models.CharField(blank=True, db_default="", default="", max_length=500),
        ),
        migrations.CreateModel(
            name="StoredMetricsToken",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("ciphertext", models.BinaryField()),
                ("added_at", models.DateTimeField()),
                (
                    "cluster",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="metrics_token", to="clusters.cluster"
                    ),
                ),
            ],
        ),
    ]
