from django.urls import path

from hekla.pages.search import views

app_name = "search"
urlpatterns = [path("", views.search, name="results")]
