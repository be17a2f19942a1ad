from django.urls import path

from hekla.pages.lazy_views import LazyViews

edit = LazyViews("hekla.pages.reports.edit")
views = LazyViews("hekla.pages.reports.views")
prefix = "reports/"
app_name = "reports"
urlpatterns = [
    path("", views.reports, name="list"),
    path("leave/<str:secret>/", views.leave, name="leave"),
    path("new/", edit.create, name="create"),
    path("<uuid:uid>/", views.detail, name="detail"),
    path("<uuid:uid>/edit/", edit.edit, name="edit"),
    path("<uuid:uid>/pause/", views.pause, name="pause"),
    path("<uuid:uid>/send/", views.send, name="send"),
    path("<uuid:uid>/delete/", views.delete, name="delete"),
    path("<uuid:uid>/html/", views.html_file, name="html"),
    path("<uuid:uid>/pdf/", views.pdf_file, name="pdf"),
    path("<uuid:uid>/<uuid:run>/", views.run, name="run"),
]
