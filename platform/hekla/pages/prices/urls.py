from django.urls import path

from hekla.pages.prices import views

prefix = "price-lists/"
app_name = "prices"
urlpatterns = [
    path("", views.show, name="list"),
    path("new/", views.create, name="create"),
    path("<uuid:uid>/", views.detail, name="detail"),
    path("<uuid:uid>/delete/", views.delete, name="delete"),
]
