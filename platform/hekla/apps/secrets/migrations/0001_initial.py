from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="JobSecrets",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("job_uid", models.UUIDField(editable=False, unique=True)),
                ("values", models.BinaryField()),
            ],
        ),
    ]
