from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0002_job_to_clean"),
    ]

    operations = [
        migrations.AddField(
            model_name="pod",
            name="annotations",
            field=models.JSONField(db_default={}, default=dict),
        ),
        migrations.AddField(
            model_name="pod",
            name="cards",
            field=models.JSONField(db_default=[], default=list),
        ),
    ]
