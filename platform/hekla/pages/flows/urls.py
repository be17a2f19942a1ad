from django.urls import path

from hekla.pages.lazy_views import LazyViews

template_views = LazyViews("hekla.pages.flows.template_views")
views = LazyViews("hekla.pages.flows.views")
prefix = "flows/"
app_name = "flows"
urlpatterns = [
    path("", views.flows, name="list"),
    path("start/", views.start, name="start"),
    path("<uuid:uid>/", views.detail, name="detail"),
    path("<uuid:uid>/stop/", views.stop, name="stop"),
    path("<uuid:uid>/delete/", views.delete, name="delete"),
    path("<uuid:uid>/manifest/", views.manifest, name="manifest"),
    path("templates/", template_views.templates, name="templates"),
    path("templates/new/", template_views.create, name="new_template"),
    path("templates/<uuid:uid>/", template_views.detail, name="template"),
    path("templates/<uuid:uid>/edit/", template_views.edit, name="edit_template"),
    path("templates/<uuid:uid>/delete/", template_views.delete, name="delete_template"),
    path("templates/<uuid:uid>/submit/", template_views.submit, name="submit_template"),
    path("templates/<uuid:uid>/manifest/", template_views.manifest, name="template_manifest"),
]
