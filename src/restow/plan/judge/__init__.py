"""Judge plans: does a plan break a rule, and how good is it?"""
