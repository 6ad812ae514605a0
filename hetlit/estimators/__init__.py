"""Estimators: each spends a budget on a table of users and writes a ledger."""
