"""Noise, and the account of it. Nothing here knows what a table of users is."""
