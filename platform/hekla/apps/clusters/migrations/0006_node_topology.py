from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("clusters", "0005_node_cards"),
    ]

    operations = [
        migrations.AddField(
            model_name="node",
            name="hypernodes",
            field=models.JSONField(db_default=[], default=list),
        ),
        migrations.AddField(
            model_name="node",
            name="numa",
            field=models.JSONField(db_default={}, default=dict),
        ),
        migrations.AddField(
            model_name="clusterhealth",
            name="topology_faults",
            field=models.JSONField(db_default=[], default=list),
        ),
    ]
