from django.urls import path

from hekla.pages.lazy_views import LazyViews

views = LazyViews("hekla.pages.priorities.views")
prefix = "priority-classes/"
app_name = "priorities"
urlpatterns = [
    path("", views.show, name="list"),
    path("new/", views.create, name="create"),
    path("<slug:name>/", views.edit, name="edit"),
    path("<slug:name>/delete/", views.delete, name="delete"),
]
