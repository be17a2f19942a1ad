from django.urls import path

from hekla.pages.lazy_views import LazyViews

views = LazyViews("hekla.pages.announcements.views")
prefix = "announcements/"
app_name = "announcements"
urlpatterns = [
    path("", views.show, name="list"),
    path("new/", views.create, name="create"),
    path("<uuid:uid>/withdraw/", views.withdraw, name="withdraw"),
    path("<uuid:uid>/dismiss/", views.dismiss, name="dismiss"),
]
