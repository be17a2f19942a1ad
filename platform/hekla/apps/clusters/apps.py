from django.apps import AppConfig


class ClustersConfig(AppConfig):
    name = "hekla.apps.clusters"
    label = "clusters"
