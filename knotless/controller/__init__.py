"""The Ryu application that installs a fabric's rules, and its pure logic."""
