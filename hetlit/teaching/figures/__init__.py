"""Figures: pure functions of numbers that return a matplotlib Figure.

One module per chapter, and what they share in `hetlit.teaching.figures.style`.  Nothing
here draws at random, touches pyplot or changes matplotlib's settings.  A notebook shows
a returned figure by naming it on the last line of a cell.

`python -m hetlit.teaching.figures FILE.svg` writes the picture of the landing page.
"""
