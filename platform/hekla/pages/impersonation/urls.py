from django.urls import path

from hekla.pages.impersonation import views

prefix = "accounts/"
app_name = "accounts"
urlpatterns = [
    path("<int:user_id>/act/", views.act_for, name="act_for"),
    path("acting/end/", views.end, name="end_acting"),
]
