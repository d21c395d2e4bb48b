"""`restow ui`: pages to look at a cluster and to plan, rehearse, run and undo moves from.

    site.py        what the server knows; watching.py: the cluster; groups.py: its groups; lake.py: loads
    run_books.py   the journals; recorded.py: a snapshot instead of a cluster, and the demo's story
    sums.py        a snapshot in numbers
    safety.py      refuses requests; sessions.py: tokens, cookies, roles
    app.py         addresses; pages/: what they show; frame.py, forms.py: what all pages have
    feeds.py       live parts of pages
    actions.py     what operators can have done; commands.py: forms to command lines; jobs.py: processes
    planning.py    addresses of plans and rehearsals; plan_store.py, audit.py: what is kept of them
    running.py     addresses of runs
    api.py         the same as JSON, and its description; api_answers.py; metrics.py: for Prometheus
    server.py      listens

Pages are made here, from the values that the commands use; what they change is changed by the commands.
"""
