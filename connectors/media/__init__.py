"""What comes with messages: pictures, documents, recordings."""
