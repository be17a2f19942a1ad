from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("alerts", "0002_flapping")]

    operations = [
        migrations.AlterField(
            model_name="alertaction",
            name="kind",
            field=models.CharField(
                choices=[
                    ("notify", "notify"),
                    ("webhook", "webhook"),
                    ("cordon", "cordon"),
                    ("label_node", "label_node"),
                    ("hold_queue", "hold_queue"),
                    ("stop_job", "stop_job"),
                ],
                max_length=16,
            ),
        ),
    ]
