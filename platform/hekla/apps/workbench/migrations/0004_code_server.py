from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("workbench", "0003_session_token"),
    ]

    operations = [
        migrations.AlterField(
            model_name="toolsession",
            name="tool",
            field=models.CharField(
                choices=[
                    ("port", "port"),
                    ("jupyterlab", "jupyterlab"),
                    ("tensorboard", "tensorboard"),
                    ("code-server", "code-server"),
                ],
                max_length=16,
            ),
        ),
    ]
