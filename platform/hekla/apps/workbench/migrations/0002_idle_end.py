from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("workbench", "0001_initial"),
    ]

    operations = [
        migrations.AlterField(
            model_name="toolsession",
            name="end_reason",
            field=models.CharField(
                blank=True,
                choices=[("closed", "closed"), ("pod", "pod"), ("tool", "tool"), ("idle", "idle")],
                default="",
                max_length=8,
            ),
        ),
    ]
