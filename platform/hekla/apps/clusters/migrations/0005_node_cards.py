from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("clusters", "0004_lease_last_shuffle_at"),
    ]

    operations = [
        migrations.AddField(
            model_name="node",
            name="cards",
            field=models.JSONField(db_default=[], default=list),
        ),
    ]
