from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("external_pods", "0002_group_policies"),
    ]

    operations = [
        migrations.AddField(
            model_name="externalgroup",
            name="priority",
            field=models.IntegerField(null=True),
        ),
        migrations.AddField(
            model_name="externalpodrow",
            name="priority",
            field=models.IntegerField(null=True),
        ),
    ]
