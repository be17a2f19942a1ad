from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("clusters", "0002_lease_fault"),
    ]

    operations = [
        migrations.AddField(
            model_name="node",
            name="taints",
            field=models.JSONField(db_default=[], default=list),
        ),
        migrations.AddField(
            model_name="node",
            name="annotations",
            field=models.JSONField(db_default={}, default=dict),
        ),
        migrations.AddField(
            model_name="node",
            name="images",
            field=models.JSONField(db_default={}, default=dict),
        ),
        migrations.AddField(
            model_name="node",
            name="images_digest",
            field=models.CharField(blank=True, db_default="", default="", max_length=32),
        ),
    ]
