"""Tests of the built site in Chromium; see conftest.py."""
