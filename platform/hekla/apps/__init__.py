"""The Django apps: rows, and the code that reads and changes them. Every app uses the same file names.

Views, forms and tasks reach rows only through `services` (writes; one transaction, which also records events) and
`selectors` (reads).
"""
