import django.contrib.postgres.fields
from django.db import migrations, models


def _everything() -> list[str]:
    """Tokens that were made before there were scopes keep all that their owners may."""
    return ["admin"]


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0001_initial"),
    ]

    operations = [
        migrations.AddField(
            model_name="apitoken",
            name="scopes",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(max_length=16), default=_everything, size=None
            ),
            preserve_default=False,
        ),
    ]
