"""Search and show single cases; queue disputed ones for reviewers."""
