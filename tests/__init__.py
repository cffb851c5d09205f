"""Tests of EvenEdit."""
