from django.urls import path

from hekla.pages.lazy_views import LazyViews

views = LazyViews("hekla.pages.notifications.views")
prefix = "notifications/"
app_name = "notifications"
urlpatterns = [
    path("", views.notifications, name="list"),
    path("bell/", views.bell, name="bell"),
    path("read/", views.read, name="read"),
    path("settings/", views.settings, name="settings"),
    path("settings/secret/", views.secret, name="secret"),
    path("jobs/<uuid:uid>/", views.job, name="job"),
]
