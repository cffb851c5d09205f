"""Write the report of one study, with its pictures."""
