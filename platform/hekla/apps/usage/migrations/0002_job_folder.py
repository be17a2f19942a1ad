import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0009_file_upload"),
        ("tenancy", "0002_tenant_files_gib"),
        ("usage", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="JobFolder",
            fields=[
                (
                    "job",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="jobs.job",
                    ),
                ),
                ("size", models.BigIntegerField(default=0)),
                ("files", models.BigIntegerField(default=0)),
                ("is_complete", models.BooleanField(default=True)),
                ("measured_at", models.DateTimeField(null=True)),
                ("due_at", models.DateTimeField(db_index=True)),
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="tenancy.tenant",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["tenant", "-size"], name="folder_by_size")],
            },
        ),
    ]
