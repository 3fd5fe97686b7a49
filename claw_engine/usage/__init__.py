"""What calls to models cost: counted, kept, and held against budgets. Knows no agent."""
