"""What runs leave behind, read: event files, metric tables, headlines, manifests and artifacts."""
