"""What every experiment uses: campaigns, options and reports."""
