"""Open vSwitch bridges: what ovs-ofctl and ovs-appctl print."""
