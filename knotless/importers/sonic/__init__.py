"""SONiC: its database, and patches of its configuration."""
