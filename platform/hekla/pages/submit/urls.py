from django.urls import path

from hekla.pages.submit import preset_views, views

prefix = "jobs/"
app_name = "jobs"
urlpatterns = [
    path("submit/", views.submit, name="submit"),
    path("submit/yaml/", views.submit_yaml, name="submit_yaml"),
    path("presets/", preset_views.presets, name="presets"),
    path("presets/<uuid:uid>/rename/", preset_views.rename, name="rename_preset"),
    path("presets/<uuid:uid>/choose/", preset_views.choose, name="choose_preset"),
    path("presets/<uuid:uid>/delete/", preset_views.delete, name="delete_preset"),
]
