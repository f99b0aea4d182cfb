"""TensorBoard event files: one writer, and the one reader of all."""

from mosaic.analytics.event_files.parser import MediaKind, Medium, ScalarChunk, Series
from mosaic.analytics.event_files.reader import EventReader
from mosaic.analytics.event_files.writer import EventWriter

__all__ = ["EventReader", "EventWriter", "MediaKind", "Medium", "ScalarChunk", "Series"]
