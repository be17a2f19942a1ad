from django.urls import path

from hekla.pages.design import views

prefix = ""
urlpatterns = [
    path("design/", views.show, name="design"),
]
