"""Labs for students, each with a sheet, a skeleton, a solution and a checker."""
