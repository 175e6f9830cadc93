"""`python -m vitrify` is the command line."""

from vitrify.cli import main

if __name__ == "__main__":
    main()
