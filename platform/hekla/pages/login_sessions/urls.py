from django.urls import path

from hekla.pages.login_sessions import views

prefix = "accounts/"
app_name = "accounts"
urlpatterns = [
    path("me/sessions/", views.visits, name="visits"),
    path("me/sessions/<int:visit_id>/end/", views.end, name="end_visit"),
    path("me/sessions/others/end/", views.end_others, name="end_other_visits"),
    path("<int:user_id>/sessions/end/", views.end_all, name="end_visits_of"),
]
