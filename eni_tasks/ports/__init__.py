"""What the services need from the outside, as Protocols in the domain's words."""
