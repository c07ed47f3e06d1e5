"""dscli: starts, stops and inspects the datasystem worker of this machine.

Sources live in cli/dscli and are installed as the package yr.datasystem.cli. Each command is one
file with SUMMARY, EXAMPLES, add_arguments() and run(); main.py only dispatches.
"""
