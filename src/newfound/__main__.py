"""`python -m newfound` is the command `newfound`."""

from newfound.cli import main

if __name__ == "__main__":
    main()
