"""The command `callboard doctor`: what is wrong with settings, disk and services.

Loaded by the command line alone. Begin with `main`, which runs the checks and prints
them; chat platforms bring checks of their own in their folders' `doctor.py`.
"""
