"""The networks that algorithms share."""
