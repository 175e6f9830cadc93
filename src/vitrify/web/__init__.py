"""The app: the atlas, the glass box and what else is served to a browser; it presents what the other layers do."""
