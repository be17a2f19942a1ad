import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0002_user_time_zone"),
        ("workbench", "0002_idle_end"),
    ]

    operations = [
        migrations.AddField(
            model_name="toolsession",
            name="token",
            field=models.OneToOneField(
                default=None,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="accounts.apitoken",
            ),
        ),
    ]
