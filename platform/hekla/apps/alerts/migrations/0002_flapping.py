from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("alerts", "0001_initial")]

    operations = [
        migrations.AddField("alert", "is_flapping", models.BooleanField(db_default=False, default=False)),
    ]
