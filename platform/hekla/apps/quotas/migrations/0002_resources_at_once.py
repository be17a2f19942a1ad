from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("quotas", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="quota",
            name="resources",
            field=models.JSONField(default=dict, verbose_name="resources at once"),
        )
    ]
