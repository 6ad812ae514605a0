"""What the Makefile and the book's build run besides the library."""
