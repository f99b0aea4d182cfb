"""The installed workers as the window sees them: their forms and presenters, by name."""
