from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("clusters", "0010_metrics_tokens")]

    operations = [
        migrations.AddField(model_name="node", name="set_labels", field=models.JSONField(db_default={}, default=dict)),
    ]
