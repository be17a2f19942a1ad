from django.urls import path

from hekla.pages.lazy_views import LazyViews

import_views = LazyViews("hekla.pages.invitations.import_views")
views = LazyViews("hekla.pages.invitations.views")
prefix = ""
app_name = "invitations"
urlpatterns = [
    path("tenants/<slug:slug>/invitations/", views.invitations, name="list"),
    path("tenants/<slug:slug>/invitations/<int:invitation_id>/resend/", views.resend, name="resend"),
    path("tenants/<slug:slug>/invitations/<int:invitation_id>/revoke/", views.revoke, name="revoke"),
    path("people/import/", import_views.import_people, name="import"),
    path("invitations/<str:secret>/", views.sign_up, name="sign_up"),
    path("invitations/<str:secret>/accept/", views.accept, name="accept"),
]
