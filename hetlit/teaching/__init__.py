"""What the book shows: figures and explorers. Outside the promise of the API."""
