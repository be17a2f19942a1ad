import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import hekla.apps.notifications.models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="NotificationCursor",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.BigIntegerField()),
            ],
        ),
        migrations.CreateModel(
            name="Notification",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("key", models.CharField(max_length=160)),
                ("moment", models.CharField(max_length=16)),
                ("at", models.DateTimeField()),
                ("job_uid", models.UUIDField(null=True)),
                ("job_name", models.CharField(blank=True, max_length=53)),
                ("tenant_id", models.BigIntegerField(null=True)),
                ("facts", models.JSONField(default=dict)),
                ("in_page", models.BooleanField(default=True)),
                ("read_at", models.DateTimeField(null=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="notifications",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["user", "-id"], name="notification_by_user"),
                    models.Index(
                        condition=models.Q(("in_page", True), ("read_at__isnull", True)),
                        fields=["user"],
                        name="notification_unread",
                    ),
                    models.Index(fields=["at"], name="notification_by_time"),
                ],
                "constraints": [models.UniqueConstraint(fields=("user", "key"), name="told_once")],
            },
        ),
        migrations.CreateModel(
            name="Delivery",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("channel", models.CharField(max_length=16)),
                ("due_at", models.DateTimeField()),
                ("attempts", models.PositiveIntegerField(default=0)),
                ("sent_at", models.DateTimeField(null=True)),
                ("abandoned_at", models.DateTimeField(null=True)),
                ("error", models.CharField(blank=True, max_length=300)),
                (
                    "notification",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="deliveries",
                        to="notifications.notification",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("abandoned_at__isnull", True), ("sent_at__isnull", True)),
                        fields=["due_at"],
                        name="delivery_due",
                    )
                ],
                "constraints": [models.UniqueConstraint(fields=("notification", "channel"), name="sent_once_each_way")],
            },
        ),
        migrations.CreateModel(
            name="Preference",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("moments", models.JSONField(default=hekla.apps.notifications.models._moments)),
                ("channels", models.JSONField(default=hekla.apps.notifications.models._default_channels)),
                ("long_wait_minutes", models.PositiveIntegerField(default=30)),
                ("mail", models.EmailField(blank=True, max_length=254)),
                ("is_digest", models.BooleanField(default=False)),
                ("webhook_url", models.CharField(blank=True, max_length=500)),
                ("webhook_secret", models.BinaryField(default=b"")),
                ("language", models.CharField(blank=True, max_length=16)),
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="notification_choice",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="JobChoice",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("moments", models.JSONField(default=hekla.apps.notifications.models._moments)),
                ("channels", models.JSONField(default=hekla.apps.notifications.models._default_channels)),
                ("long_wait_minutes", models.PositiveIntegerField(default=30)),
                ("job_uid", models.UUIDField()),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["job_uid"], name="choice_by_job")],
                "constraints": [models.UniqueConstraint(fields=("user", "job_uid"), name="one_choice_of_a_job")],
            },
        ),
    ]
