from django.apps import AppConfig


class PolicyLabConfig(AppConfig):
    name = "hekla.apps.policy_lab"
    label = "policy_lab"
