"""What operators do to the directory and to clients: files, and single commands for the first hour and for emergencies."""
