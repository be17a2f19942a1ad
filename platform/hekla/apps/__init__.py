"""The rows and the pages, an app each; every app has files of the same names.

Views, forms and tasks reach rows only through `services` (verbs; writes; one transaction, which also records events)
and `selectors` (reads).
"""
