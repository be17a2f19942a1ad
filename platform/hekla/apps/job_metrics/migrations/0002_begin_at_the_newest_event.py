from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor


def begin_at_the_newest_event(apps: Apps, _editor: BaseDatabaseSchemaEditor) -> None:
    """The logs of jobs that ended before are not read again."""
    newest = apps.get_model("event_log", "LoggedEvent").objects.order_by("-id").values_list("id", flat=True).first()
    if newest:
        apps.get_model("job_metrics", "MetricCursor").objects.create(pk=1, number=newest)


class Migration(migrations.Migration):
    dependencies = [("job_metrics", "0001_initial"), ("event_log", "0003_event_of_people_by_kind")]

    operations = [migrations.RunPython(begin_at_the_newest_event, migrations.RunPython.noop)]
