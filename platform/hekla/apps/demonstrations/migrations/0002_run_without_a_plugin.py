from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("demonstrations", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="demorun",
            name="without",
            field=models.CharField(blank=True, db_default="", default="", max_length=40),
        ),
    ]
