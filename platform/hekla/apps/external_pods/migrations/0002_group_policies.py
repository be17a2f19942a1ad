from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("external_pods", "0001_initial"),
    ]

    operations = [
        migrations.AddField(
            model_name="externalgroup",
            name="roles",
            field=models.JSONField(db_default={}, default=dict),
        ),
        migrations.AddField(
            model_name="externalgroup",
            name="sub_groups",
            field=models.JSONField(db_default=[], default=list),
        ),
        migrations.AddField(
            model_name="externalpodrow",
            name="labels",
            field=models.JSONField(db_default={}, default=dict),
        ),
    ]
