"""Files in the folders of pods, as far as rows and backends belong together.

uploading.py   writes a file for a person, in pieces or at once
measuring.py   measures in the background how much room the files of jobs take

Above apps and backends, because it joins them; below pages and REST, which both use it.
"""
