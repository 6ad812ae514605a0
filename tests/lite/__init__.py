"""Tests of the chapters in a browser; see conftest.py."""
