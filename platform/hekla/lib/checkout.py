"""The folder of this checkout, with manage.py. Paths of templates, static files, locks and examples start here."""

from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[3]
