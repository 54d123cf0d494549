from peridot_command import main

main()
