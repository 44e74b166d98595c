"""Companies with the settings that come with the program, on all platforms."""
