//! What a sandbox reaches by an allow-list, and what it does not: real clients in it, real servers
//! beyond it, and the gateway between them.

mod asked;
mod clients;
mod crowd;
mod gateway;
mod install;
mod install_registries;
mod mcp;
mod names;
mod outside;
mod own_machine;
mod search;
mod session_install;
mod throwaway;
mod web;
