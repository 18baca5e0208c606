//! The gateway against servers of this machine, at public addresses that a stub resolver and a
//! dialler of the tests' own make up.

mod addresses;
mod bounds;
mod direct;
mod kit;
mod own_machine;
mod plain;
mod servers;
mod tunnels;
mod upstream;
mod withdrawn;
