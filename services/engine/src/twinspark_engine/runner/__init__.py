"""Executes StepPlans: input rows, the two forwards of a step, the draw, stops."""
