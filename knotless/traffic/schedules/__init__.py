"""All-to-all schedules in phases."""
