from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("clusters", "0008_cluster_objects"),
    ]

    operations = [
        migrations.AddField(
            model_name="node",
            name="drain_reason",
            field=models.CharField(blank=True, db_default="", default="", max_length=200),
        ),
        migrations.AddField(
            model_name="node",
            name="draining_since",
            field=models.DateTimeField(default=None, null=True),
        ),
    ]
