from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("invitations", "0002_people_of_a_table"),
    ]

    operations = [
        migrations.AddField(
            model_name="invitation",
            name="grants",
            field=models.JSONField(default=dict),
        ),
    ]
