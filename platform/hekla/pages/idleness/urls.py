from django.urls import path

from hekla.pages.idleness import views

prefix = ""
app_name = "idleness"
urlpatterns = [
    path("idle-rule/", views.platform_rule, name="platform"),
    path("tenants/<slug:slug>/idle-rule/", views.tenant_rule, name="tenant"),
]
