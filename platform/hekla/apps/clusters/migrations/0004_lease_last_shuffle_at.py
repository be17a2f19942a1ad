from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("clusters", "0003_node_taints"),
    ]

    operations = [
        migrations.AddField(
            model_name="lease",
            name="last_shuffle_at",
            field=models.DateTimeField(null=True),
        ),
    ]
