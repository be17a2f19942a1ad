from django.urls import path

from hekla.pages.lazy_views import LazyViews

edit_views = LazyViews("hekla.pages.queues.edit_views")
preview = LazyViews("hekla.pages.queues.preview")
share_views = LazyViews("hekla.pages.queues.share_views")
views = LazyViews("hekla.pages.queues.views")
prefix = "queues/"
app_name = "queues"
urlpatterns = [
    path("", views.show_all, name="list"),
    path("new/", edit_views.create, name="create"),
    path("new/preview/", preview.of_new, name="preview_new"),
    path("<slug:name>/", views.show, name="detail"),
    path("<slug:name>/edit/", edit_views.edit, name="edit"),
    path("<slug:name>/share/", share_views.show, name="share"),
    path("<slug:name>/state/", edit_views.set_state, name="set_state"),
    path("<slug:name>/preview/", preview.of_change, name="preview"),
]
