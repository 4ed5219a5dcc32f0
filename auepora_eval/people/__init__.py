"""People: tasks and their labels, the review of questions, the agreement of annotators."""
