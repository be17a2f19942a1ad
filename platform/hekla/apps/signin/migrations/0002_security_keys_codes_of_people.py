import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps


def give_codes_to_people(apps: StateApps, _editor: BaseDatabaseSchemaEditor) -> None:
    """Until now they were an app's."""
    codes, factors = apps.get_model("signin", "RecoveryCode"), apps.get_model("signin", "SecondFactor")
    owner = factors.objects.filter(pk=models.OuterRef("factor_id")).values("user_id")
    codes.objects.update(user_id=models.Subquery(owner))


class Migration(migrations.Migration):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("signin", "0001_second_factors"),
    ]

    operations = [
        migrations.CreateModel(
            name="Tries",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("wrong", models.PositiveSmallIntegerField(default=0)),
                ("wrong_since", models.DateTimeField(null=True)),
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="factor_tries",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.RemoveField(model_name="secondfactor", name="wrong"),
        migrations.RemoveField(model_name="secondfactor", name="wrong_since"),
        migrations.RemoveConstraint(model_name="recoverycode", name="one_recovery_code"),
        migrations.AddField(
            model_name="recoverycode",
            name="user",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="recovery_codes",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.RunPython(give_codes_to_people),
        migrations.RemoveField(model_name="recoverycode", name="factor"),
        migrations.AlterField(
            model_name="recoverycode",
            name="user",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="recovery_codes",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddConstraint(
            model_name="recoverycode",
            constraint=models.UniqueConstraint(fields=("user", "digest"), name="one_recovery_code"),
        ),
    ]
