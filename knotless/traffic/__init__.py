"""Traffic on a fabric: patterns, loads, fair rates and all-to-all schedules."""
