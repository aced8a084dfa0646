"""One module for each family of fabrics; :mod:`topologies.registry` finds them all."""
