"""`python -m hekla.cli`: the same as the installed `hekla`."""

from hekla.cli.main import main

main()
