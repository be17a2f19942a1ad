from django.urls import path

from hekla.pages.lazy_views import LazyViews

views = LazyViews("hekla.pages.login_sessions.views")
prefix = "accounts/"
app_name = "accounts"
urlpatterns = [
    path("me/sessions/", views.login_sessions, name="login_sessions"),
    path("me/sessions/<int:login_session_id>/end/", views.end, name="end_login_session"),
    path("me/sessions/others/end/", views.end_others, name="end_other_login_sessions"),
    path("<int:user_id>/sessions/end/", views.end_all, name="end_login_sessions_of"),
]
