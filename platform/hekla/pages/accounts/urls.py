from django.urls import path

from hekla.pages.lazy_views import LazyViews

views = LazyViews("hekla.pages.accounts.views")
prefix = "accounts/"
app_name = "accounts"
urlpatterns = [
    path("", views.people, name="list"),
    path("new/", views.create, name="create"),
    path("<int:user_id>/", views.edit, name="edit"),
    path("<int:user_id>/link/", views.give_link, name="give_link"),
    path("me/", views.profile, name="profile"),
    path("me/tokens/", views.create_token, name="create_token"),
    path("me/tokens/<int:token_id>/revoke/", views.revoke_token, name="revoke_token"),
]
