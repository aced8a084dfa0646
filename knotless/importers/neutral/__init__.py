"""Reader of a documented format for fabrics for which there is no other reader."""
