import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("tenancy", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Invitation",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "role",
                    models.CharField(
                        choices=[("admin", "Admin"), ("member", "Member"), ("viewer", "Viewer")], max_length=16
                    ),
                ),
                (
                    "platform_role",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("admin", "Platform admin"),
                            ("operator", "Operator"),
                            ("manager", "Manager"),
                            ("editor", "Editor"),
                            ("moderator", "Moderator"),
                        ],
                        max_length=16,
                    ),
                ),
                ("email", models.EmailField(blank=True, max_length=254)),
                ("username", models.CharField(blank=True, max_length=150)),
                ("display_name", models.CharField(blank=True, max_length=120)),
                ("grants", models.JSONField(default=dict)),
                ("digest", models.CharField(max_length=64, unique=True)),
                ("created_at", models.DateTimeField()),
                ("expires_at", models.DateTimeField()),
                ("accepted_at", models.DateTimeField(null=True)),
                ("revoked_at", models.DateTimeField(null=True)),
                (
                    "accepted_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="accepted_invitations",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "invited_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="invitations",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="invitations", to="tenancy.tenant"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("accepted_at", None), ("revoked_at", None), _connector="OR"),
                        name="accepted_or_revoked",
                    )
                ]
            },
        ),
        migrations.CreateModel(
            name="InvitationMail",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("link", models.BinaryField()),
                ("language", models.CharField(max_length=16)),
                ("due_at", models.DateTimeField(db_index=True, null=True)),
                ("attempts", models.PositiveIntegerField(default=0)),
                ("error", models.CharField(blank=True, max_length=300)),
                (
                    "invitation",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="letter", to="invitations.invitation"
                    ),
                ),
            ],
        ),
    ]
