"""HTTP for programs, scrapers and browsers."""
