"""Sound to words and words to sound, over endpoints like OpenAI's.

Made from `[media.transcriber]` and `[media.speaker]`. Begin with `transcription`;
`speech` is the other direction.
"""
