from django.contrib.auth.views import LoginView, LogoutView
from django.urls import path

from hekla.apps.accounts import views

app_name = "accounts"
urlpatterns = [
    path("", views.people, name="list"),
    path("new/", views.create, name="create"),
    path("<int:user_id>/", views.edit, name="edit"),
    path("<int:user_id>/link/", views.give_link, name="give_link"),
    path("me/", views.profile, name="profile"),
    path("me/tokens/", views.create_token, name="create_token"),
    path("me/tokens/<int:token_id>/revoke/", views.revoke_token, name="revoke_token"),
    path(
        "sign-in/",
        LoginView.as_view(template_name="accounts/sign_in.html", redirect_authenticated_user=True),
        name="sign_in",
    ),
    path("sign-out/", LogoutView.as_view(), name="sign_out"),
    path("link/<str:secret>/", views.use_link, name="use_link"),
]
