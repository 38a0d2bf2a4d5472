"""python -m fedvote"""

from fedvote.cli import main

main()
