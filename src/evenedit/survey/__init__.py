"""The survey: who is asked, what they are shown, and what they answer."""
