from django.urls import path

from hekla.pages.lazy_views import LazyViews

preset_views = LazyViews("hekla.pages.submit.preset_views")
views = LazyViews("hekla.pages.submit.views")
prefix = "jobs/"
app_name = "jobs"
urlpatterns = [
    path("submit/", views.submit, name="submit"),
    path("submit/yaml/", views.submit_yaml, name="submit_yaml"),
    path("templates/", preset_views.presets, name="presets"),
    path("templates/<uuid:uid>/rename/", preset_views.rename, name="rename_preset"),
    path("templates/<uuid:uid>/choose/", preset_views.choose, name="choose_preset"),
    path("templates/<uuid:uid>/delete/", preset_views.delete, name="delete_preset"),
    path("presets/", preset_views.former_address, name="former_presets"),
]
