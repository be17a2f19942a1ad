from django.urls import path

from hekla.pages.lazy_views import LazyViews

views = LazyViews("hekla.pages.gallery.views")
prefix = "gallery/"
app_name = "gallery"
urlpatterns = [
    path("", views.gallery, name="list"),
    path("publish/", views.publish, name="publish"),
    path("<uuid:uid>/", views.template, name="template"),
    path("<uuid:uid>/withdraw/", views.withdraw, name="withdraw"),
]
