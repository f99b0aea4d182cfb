"""Playing trained policies: models, batches of episodes, interactive sessions."""
