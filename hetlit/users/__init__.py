"""Users and where they come from: tables, event logs, simulation. No privacy here."""
