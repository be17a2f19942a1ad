from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("batches", "0003_metrics_of_all_jobs")]

    operations = [
        migrations.RemoveIndex(model_name="batchjob", name="batch_job_unread"),
        migrations.RemoveField(model_name="batchjob", name="is_read"),
        migrations.DeleteModel(name="MetricLog"),
    ]
