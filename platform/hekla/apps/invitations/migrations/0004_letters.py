import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("invitations", "0003_what_else_is_given"),
    ]

    operations = [
        migrations.CreateModel(
            name="Letter",
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
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="letter",
                        to="invitations.invitation",
                    ),
                ),
            ],
        ),
    ]
