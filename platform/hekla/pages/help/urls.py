from django.urls import path

from hekla.pages.help import views

prefix = "help/"
app_name = "help"
urlpatterns = [
    path("", views.index, name="index"),
    path("<slug:name>/", views.page, name="page"),
]
