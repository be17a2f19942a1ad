"""These addresses are part of `accounts/`."""

from django.urls import path

from hekla.pages.impersonation import views

urlpatterns = [
    path("<int:user_id>/act/", views.act_for, name="act_for"),
    path("acting/end/", views.end, name="end_acting"),
]
