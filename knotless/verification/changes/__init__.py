"""Proven changes of rules: from what switches hold to a new plan, step by step.

:func:`knotless.verification.changes.planner.plan_change` returns the steps, each with all rules of
the fabric and its proof; :func:`knotless.verification.changes.record.change_record` is what was
proven, as JSON.
"""
