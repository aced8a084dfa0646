"""InfiniBand subnets: what ibnetdiscover, dump_lfts and their relatives print."""
