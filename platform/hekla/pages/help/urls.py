from django.urls import path

from hekla.pages.lazy_views import LazyViews

views = LazyViews("hekla.pages.help.views")
prefix = "help/"
app_name = "help"
urlpatterns = [
    path("", views.index, name="index"),
    path("<slug:name>/", views.page, name="page"),
]
