from django.urls import path

from hekla.pages.lazy_views import LazyViews

views = LazyViews("hekla.pages.departments.views")
prefix = "departments/"
app_name = "departments"
urlpatterns = [
    path("", views.listed, name="list"),
    path("new/", views.create, name="create"),
    path("<slug:slug>/", views.detail, name="detail"),
    path("<slug:slug>/edit/", views.edit, name="edit"),
]
