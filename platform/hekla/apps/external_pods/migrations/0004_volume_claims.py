from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("external_pods", "0003_priorities"),
    ]

    operations = [
        migrations.AddField(
            model_name="externalpodrow",
            name="volume_claims",
            field=models.JSONField(db_default=[], default=list),
        ),
    ]
