"""Seal a study's plan and check adherence to it."""
