"""`restow ui`: pages to look at a cluster and to plan, rehearse, run and undo moves from.

    site.py        what the server knows; watching.py: the cluster; run_books.py: the journals
    sums.py        a snapshot in numbers
    safety.py      refuses requests; sessions.py: tokens, cookies, roles
    app.py         addresses; pages/: what they show; frame.py, forms.py: what all pages have
    feeds.py       live parts of pages
    planning.py    addresses of plans and rehearsals; plan_store.py, audit.py: what is kept of them
    running.py     addresses that begin and change runs; predictions.py: what rehearsals said of them
    commands.py    forms to command lines; jobs.py: commands as processes
    api.py         the same as JSON, and its description; metrics.py: for Prometheus
    server.py      listens

Pages are made here, from the values that the commands use; what they change is changed by the commands.
"""
