from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tenancy", "0001_initial"),
    ]

    operations = [
        migrations.AddField(
            model_name="tenant",
            name="files_gib",
            field=models.PositiveIntegerField(null=True, verbose_name="limit of files in GiB"),
        ),
    ]
