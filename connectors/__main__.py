"""`python -m connectors` is `callboard`, for when it is not installed."""

from connectors import main

if __name__ == "__main__":
    main()
