from django.apps import AppConfig


class InvitationsConfig(AppConfig):
    name = "hekla.apps.invitations"
    label = "invitations"
