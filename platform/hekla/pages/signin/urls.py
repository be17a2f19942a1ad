from django.contrib.auth.views import LogoutView
from django.urls import path

from hekla.pages.lazy_views import LazyViews
from hekla.pages.signin import views

key_views = LazyViews("hekla.pages.signin.key_views")
prefix = "accounts/"
app_name = "accounts"
urlpatterns = [
    path("sign-in/", views.SignIn.as_view(), name="sign_in"),
    path("sign-in/code/", views.second_step, name="second_step"),
    path("sign-out/", LogoutView.as_view(), name="sign_out"),
    path("link/<str:secret>/", views.use_link, name="use_link"),
    path("me/prove/", views.prove, name="prove"),
    path("me/second-factor/", views.second_factor, name="second_factor"),
    path("me/second-factor/begin/", views.begin, name="begin_factor"),
    path("me/second-factor/confirm/", views.confirm, name="confirm_factor"),
    path("me/second-factor/codes/", views.renew_codes, name="renew_codes"),
    path("me/second-factor/remove/", views.remove, name="remove_factor"),
    path("me/second-factor/keys/add/", key_views.add, name="add_key"),
    path("me/second-factor/keys/<int:key_id>/remove/", key_views.remove, name="remove_key"),
    path("<int:user_id>/second-factor/reset/", views.reset, name="reset_factor"),
]
