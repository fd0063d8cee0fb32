"""`python -m tfm`: the `tfm` command."""

from tfm.cli.app import main

if __name__ == "__main__":
    main()
