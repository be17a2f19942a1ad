from django.apps import AppConfig


class GalleryConfig(AppConfig):
    name = "hekla.apps.gallery"
    label = "gallery"
