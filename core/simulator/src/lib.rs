//! An event-driven simulator of lossless fabrics: the switch model under a virtual clock.
#![forbid(unsafe_code)]
