import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Cluster",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.SlugField(max_length=40, unique=True, verbose_name="name")),
                (
                    "kind",
                    models.CharField(max_length=40, verbose_name="kind"),
                ),
                ("config", models.JSONField(blank=True, default=dict, verbose_name="configuration")),
                ("is_paused", models.BooleanField(default=False, verbose_name="paused")),
                ("created_at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="Environment",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.SlugField(max_length=63, unique=True, verbose_name="name")),
                ("description", models.CharField(blank=True, max_length=300, verbose_name="description")),
                ("requirements", models.TextField(blank=True, max_length=20000, verbose_name="requirements")),
                ("created_at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="ClusterHealth",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("checked_at", models.DateTimeField()),
                ("since", models.DateTimeField()),
                ("problem", models.CharField(blank=True, max_length=20)),
                ("detail", models.CharField(blank=True, max_length=500)),
                ("version", models.CharField(blank=True, max_length=100)),
                ("has_namespace", models.BooleanField(null=True)),
                ("missing", models.JSONField(default=list)),
                ("kubelets", models.JSONField(default=dict)),
                (
                    "cluster",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="health", to="clusters.cluster"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="StoredClusterKey",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("ciphertext", models.BinaryField()),
                ("server", models.CharField(max_length=300)),
                ("holder", models.CharField(blank=True, max_length=253)),
                ("fingerprint", models.CharField(max_length=64)),
                ("valid_until", models.DateTimeField(null=True)),
                ("added_at", models.DateTimeField()),
                (
                    "cluster",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="key", to="clusters.cluster"
                    ),
                ),
                (
                    "added_by",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Lease",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("holder", models.CharField(max_length=120)),
                ("epoch", models.PositiveBigIntegerField(default=0)),
                ("expires_at", models.DateTimeField()),
                (
                    "cluster",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="lease", to="clusters.cluster"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Node",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=253)),
                ("allocatable", models.JSONField()),
                ("labels", models.JSONField(default=dict)),
                ("is_ready", models.BooleanField(default=True)),
                ("is_cordoned", models.BooleanField(default=False)),
                ("message", models.CharField(blank=True, max_length=500)),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="nodes", to="clusters.cluster"
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("cluster", "name"), name="one_node_of_a_name")],
            },
        ),
        migrations.CreateModel(
            name="PolicyVersion",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveIntegerField()),
                ("text", models.TextField(max_length=100000)),
                ("note", models.CharField(blank=True, max_length=200)),
                ("created_at", models.DateTimeField()),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="policies", to="clusters.cluster"
                    ),
                ),
                (
                    "created_by",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("cluster", "number"), name="one_policy_of_a_number")],
            },
        ),
    ]
