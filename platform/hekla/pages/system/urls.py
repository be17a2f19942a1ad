from django.urls import path

from hekla.pages.system import views

prefix = "system/"
app_name = "system"
urlpatterns = [path("", views.show, name="show")]
