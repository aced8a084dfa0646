"""IP routers: the facts of all their files as one fabric."""
