from typing import Any

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.models import F


def closed_as_they_were(apps: Any, _editor: Any) -> None:  # noqa: ANN401
    queues = apps.get_model("queues", "Queue").objects.filter(is_open=False)
    queues.update(state="closed", state_at=F("changed_at"), state_by=F("changed_by"))


def open_or_not(apps: Any, _editor: Any) -> None:  # noqa: ANN401
    apps.get_model("queues", "Queue").objects.exclude(state="open").update(is_open=False)


class Migration(migrations.Migration):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("queues", "0002_deserved_and_parent"),
    ]

    operations = [
        migrations.AddField(
            model_name="queue",
            name="state",
            field=models.CharField(
                choices=[("open", "open"), ("draining", "draining"), ("closed", "closed")],
                default="open",
                max_length=16,
                verbose_name="state",
            ),
        ),
        migrations.AddField(model_name="queue", name="state_at", field=models.DateTimeField(null=True)),
        migrations.AddField(
            model_name="queue",
            name="state_by",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.RunPython(closed_as_they_were, open_or_not),
        migrations.RemoveField(model_name="queue", name="is_open"),
    ]
