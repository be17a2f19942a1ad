from django.urls import path

from hekla.pages.lazy_views import LazyViews

views = LazyViews("hekla.pages.federated_queues.views")
prefix = "federated-queues/"
app_name = "federated_queues"
urlpatterns = [
    path("", views.listed, name="list"),
    path("new/", views.create, name="create"),
    path("<slug:name>/", views.detail, name="detail"),
    path("<slug:name>/edit/", views.edit, name="edit"),
    path("<slug:name>/delete/", views.delete, name="delete"),
]
