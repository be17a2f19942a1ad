from django.apps import AppConfig


class ExternalPodsConfig(AppConfig):
    name = "hekla.apps.external_pods"
    label = "external_pods"
