from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("policy_lab", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="labrun",
            name="problem_facts",
            field=models.JSONField(db_default={}, default=dict),
        ),
    ]
