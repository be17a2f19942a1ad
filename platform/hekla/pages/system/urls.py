from django.urls import path

from hekla.pages.lazy_views import LazyViews

views = LazyViews("hekla.pages.system.views")
prefix = "system/"
app_name = "system"
urlpatterns = [path("", views.show, name="show")]
