"""Where this code lies: the folder with manage.py. Templates, static files, locks and examples are found from here."""

from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[3]
