"""`python -m evenedit`."""

from evenedit.cli import main

main()
