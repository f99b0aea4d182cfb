"""Live frames out of any environment, in any interpreter from Python 3.8 on with gymnasium 0.29 or newer."""

from __future__ import annotations

from cleanrl_worker.portable.fastlane.wrapper import FastLaneTelemetryWrapper, install

__all__ = ["FastLaneTelemetryWrapper", "install"]
