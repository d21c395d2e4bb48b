"""The judge of plans: does a plan break anything, and how good is it?"""
