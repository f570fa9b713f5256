"""Evaluation of what the served folder reads in pictures: own drawings, own wordings, tower and engine in this process.

Nothing here knows a picture or a sentence that the model was trained on.
"""
