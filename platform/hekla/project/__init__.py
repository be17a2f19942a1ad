"""The Django project: settings, URLs, ASGI and Celery applications."""
