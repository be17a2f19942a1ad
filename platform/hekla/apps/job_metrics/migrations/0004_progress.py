from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("job_metrics", "0003_event_metrics")]

    operations = [
        migrations.AddField("eventmetrics", "known_at", models.DateTimeField(null=True)),
        migrations.AddField("eventmetrics", "progress", models.JSONField(db_default={}, default=dict)),
        migrations.AddField("metriclog", "grew_at", models.DateTimeField(null=True)),
        migrations.AddField("metriclog", "growths", models.PositiveIntegerField(db_default=0, default=0)),
        migrations.AddField("metriclog", "known_at", models.DateTimeField(null=True)),
        migrations.AddField("metriclog", "longest_pause", models.PositiveIntegerField(db_default=0, default=0)),
        migrations.AddField("metriclog", "progress", models.JSONField(db_default={}, default=dict)),
        migrations.AddField("metriclog", "size", models.BigIntegerField(db_default=0, default=0)),
    ]
