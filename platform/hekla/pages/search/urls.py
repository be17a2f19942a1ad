from django.urls import path

from hekla.pages.lazy_views import LazyViews

views = LazyViews("hekla.pages.search.views")
prefix = "search/"
app_name = "search"
urlpatterns = [path("", views.search, name="results")]
