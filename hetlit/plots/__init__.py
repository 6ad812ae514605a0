"""Figures: pure functions of numbers that return a matplotlib Figure.

One module per chapter, and what they share in `hetlit.plots.style`.  Nothing here
draws at random, touches pyplot or changes matplotlib's settings.  A notebook shows a
returned figure by naming it on the last line of a cell.

`python -m hetlit.plots FILE.svg` writes the picture of the landing page.
"""
