from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0004_pod_with_cards"),
    ]

    operations = [
        migrations.AddField(
            model_name="job",
            name="restart_at",
            field=models.DateTimeField(null=True),
        ),
    ]
