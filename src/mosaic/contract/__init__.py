"""What processes agree on: configs, events, states, paths and the wire format."""
