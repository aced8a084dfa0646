"""The Ryu application that installs a fabric's rules, and the pure code that it calls."""
