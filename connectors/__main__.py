"""Where the program begins: `callboard`, or `python -m connectors` from a checkout."""


def main() -> None:
    """Load the command line, and run it."""
    try:
        # Why here: it takes a while, and Ctrl-C meanwhile shows no traceback.
        from connectors.cli import main as run  # noqa: PLC0415
    except KeyboardInterrupt:
        raise SystemExit(130) from None  # as `INTERRUPTED` there
    run()


if __name__ == "__main__":
    main()
