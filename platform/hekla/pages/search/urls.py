from django.urls import path

from hekla.pages.search import views

prefix = "search/"
app_name = "search"
urlpatterns = [path("", views.search, name="results")]
