from django.urls import path

from hekla.pages.demonstrations import views

prefix = "demonstrations/"
app_name = "demonstrations"
urlpatterns = [
    path("", views.demonstrations, name="list"),
    path("<slug:name>/", views.detail, name="detail"),
    path("<slug:name>/start/", views.start, name="start"),
]
