"""`python -m headgate`, and the file to give to spark-submit."""

from headgate.cli.main import main

if __name__ == "__main__":
    main()
