"""What may run: the decision core, the rules file, and the broker that asks a person."""
