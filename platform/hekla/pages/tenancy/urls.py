from django.urls import path

from hekla.pages.lazy_views import LazyViews

views = LazyViews("hekla.pages.tenancy.views")
prefix = "tenants/"
app_name = "tenancy"
urlpatterns = [
    path("", views.tenants, name="list"),
    path("new/", views.create, name="create"),
    path("switch/", views.switch, name="switch"),
    path("<slug:slug>/", views.detail, name="detail"),
    path("<slug:slug>/edit/", views.edit, name="edit"),
    path("<slug:slug>/retention/", views.set_retention, name="set_retention"),
    path("<slug:slug>/members/", views.add_member, name="add_member"),
    path("<slug:slug>/members/<int:user_id>/role/", views.change_role, name="change_role"),
    path("<slug:slug>/members/<int:user_id>/remove/", views.remove_member, name="remove_member"),
]
