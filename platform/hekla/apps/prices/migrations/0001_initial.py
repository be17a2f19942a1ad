import uuid

from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="PriceList",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("uid", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ("name", models.CharField(max_length=60)),
                ("currency", models.CharField(max_length=12)),
                ("begin_at", models.DateTimeField()),
                ("spec", models.JSONField()),
                ("factors", models.JSONField(default=dict)),
                ("is_demonstration", models.BooleanField(default=False)),
                ("created_by", models.CharField(blank=True, max_length=150)),
                ("created_at", models.DateTimeField()),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("begin_at",), name="one_price_list_at_a_time")],
            },
        ),
    ]
