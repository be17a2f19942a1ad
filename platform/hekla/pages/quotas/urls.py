from django.urls import path

from hekla.pages.quotas import views

prefix = "tenants/"
app_name = "tenancy"
urlpatterns = [
    path("<slug:slug>/quotas/", views.show, name="quotas"),
]
