from django.urls import path

from hekla.pages.tenant_files import views

prefix = "tenants/"
app_name = "tenancy"
urlpatterns = [
    path("<slug:slug>/files/", views.show, name="files"),
]
