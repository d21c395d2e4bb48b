"""Pages and pictures: HTML and SVG as text, without scripts or external files.

    page.py    the frame of a page, paragraphs and tables
    plots.py   bars, changes and lines

They also show values in notebooks, where the page's style is missing. Every text is escaped here, whatever a
topic is called.
"""
