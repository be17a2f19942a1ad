from django.urls import path

from hekla.pages.lazy_views import LazyViews

views = LazyViews("hekla.pages.impersonation.views")
prefix = "accounts/"
app_name = "accounts"
urlpatterns = [
    path("<int:user_id>/impersonate/", views.impersonate, name="impersonate"),
    path("impersonation/end/", views.end, name="end_impersonation"),
]
