"""Plans as the routes of IP routers: FRR on Linux, and SONiC switches."""
