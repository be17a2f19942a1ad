from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("quotas", "0002_resources_at_once")]

    operations = [
        migrations.AddField(
            model_name="quota",
            name="sessions",
            field=models.PositiveIntegerField(null=True, verbose_name="debugging sessions"),
        )
    ]
