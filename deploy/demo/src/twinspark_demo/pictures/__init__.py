"""Generator of pictures and of conversations about them: numbers, colours, shapes to count."""

from twinspark_demo.pictures.picture import Mark, Picture

__all__ = ["Mark", "Picture"]
