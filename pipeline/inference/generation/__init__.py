"""Text from a language model after a prompt, by torch or by numpy alone; the probability of given continuations."""
