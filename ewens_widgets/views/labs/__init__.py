"""The labs: dashboards for one subject each.

Their names in `ewens_widgets` lead to these modules.
"""
