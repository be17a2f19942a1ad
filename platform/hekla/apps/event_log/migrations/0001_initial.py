import django.contrib.postgres.fields
import django.db.models.fields.json
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Numbering",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("last", models.BigIntegerField()),
                ("purged", models.BigIntegerField(default=0)),
            ],
        ),
        migrations.CreateModel(
            name="LoggedEvent",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("at", models.DateTimeField()),
                ("kind", models.CharField(max_length=64)),
                ("subject", models.CharField(max_length=80)),
                ("tenant_id", models.BigIntegerField(null=True)),
                ("actor_id", models.BigIntegerField(null=True)),
                ("actor_name", models.CharField(max_length=150)),
                ("impersonator_name", models.CharField(db_default="", default="", max_length=150)),
                (
                    "topics",
                    django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=80), size=None),
                ),
                ("payload", models.JSONField()),
            ],
            options={
                "indexes": [
                    models.Index(fields=["subject", "id"], name="event_by_subject"),
                    models.Index(fields=["tenant_id", "id"], name="event_by_tenant"),
                    models.Index(fields=["at"], name="event_by_time"),
                    models.Index(
                        condition=models.Q(("actor_id__isnull", False)),
                        fields=["actor_name", "id"],
                        name="event_of_person",
                    ),
                    models.Index(
                        condition=models.Q(("actor_id__isnull", False)), fields=["id"], name="event_of_people"
                    ),
                    models.Index(
                        condition=models.Q(("impersonator_name", ""), _negated=True),
                        fields=["impersonator_name", "id"],
                        name="event_on_behalf",
                    ),
                    models.Index(
                        condition=models.Q(
                            ("kind__in", ["JobUnschedulable", "JobPhaseChanged", "GangPhaseChanged", "PodEvicted"])
                        ),
                        fields=["subject", "id"],
                        name="event_of_a_course",
                    ),
                    models.Index(
                        django.db.models.fields.json.KeyTextTransform("for_job", "payload"),
                        models.F("id"),
                        condition=models.Q(("kind", "PodEvicted")),
                        name="event_of_gain",
                    ),
                ],
            },
        ),
    ]
