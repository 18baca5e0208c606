//! Addresses that are never reached, whatever a name resolves to: of this machine, of its networks, and those that only stand for one of them.

use std::net::IpAddr;
use std::net::Ipv4Addr;
use std::net::Ipv6Addr;

/// Networks of IPv4 that are not the Internet: the IANA registry of special-purpose addresses, with multicast and what is reserved. Cloud metadata
/// lies in link-local.
const REFUSED_V4: [([u8; 4], u32); 15] = [
    ([0, 0, 0, 0], 8),
    ([10, 0, 0, 0], 8),
    ([100, 64, 0, 0], 10),
    ([127, 0, 0, 0], 8),
    ([169, 254, 0, 0], 16),
    ([172, 16, 0, 0], 12),
    ([192, 0, 0, 0], 24),
    ([192, 0, 2, 0], 24),
    ([192, 88, 99, 0], 24),
    ([192, 168, 0, 0], 16),
    ([198, 18, 0, 0], 15),
    ([198, 51, 100, 0], 24),
    ([203, 0, 113, 0], 24),
    ([224, 0, 0, 0], 4),
    ([240, 0, 0, 0], 4),
];

/// The one part of IPv6 that is given out (2000::/3), and what in it is not the Internet: Teredo, benchmarks, ORCHID, documentation, 6to4.
const GLOBAL_V6: ([u16; 8], u32) = ([0x2000, 0, 0, 0, 0, 0, 0, 0], 3);
const REFUSED_V6: [([u16; 8], u32); 4] = [
    ([0x2001, 0, 0, 0, 0, 0, 0, 0], 23),
    ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32),
    ([0x2002, 0, 0, 0, 0, 0, 0, 0], 16),
    ([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20),
];

/// Returns whether an address is one of the Internet. One that carries an address of IPv4 (mapped, NAT64) is never.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !REFUSED_V4.iter().any(|&(network, bits)| is_in_v4(address, network, bits)),
        IpAddr::V6(address) => {
            is_in_v6(address, GLOBAL_V6.0, GLOBAL_V6.1) && !REFUSED_V6.iter().any(|&(network, bits)| is_in_v6(address, network, bits))
        }
    }
}

fn is_in_v4(address: Ipv4Addr, network: [u8; 4], bits: u32) -> bool {
    let mask = u32::MAX << (32 - bits);
    address.to_bits() & mask == Ipv4Addr::from(network).to_bits()
}

fn is_in_v6(address: Ipv6Addr, network: [u16; 8], bits: u32) -> bool {
    let mask = u128::MAX << (128 - bits);
    address.to_bits() & mask == Ipv6Addr::from(network).to_bits()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_the_internet_are_public() {
        for address in
            ["1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "172.32.0.1", "223.255.255.255", "2606:4700::1", "2a00::1"]
        {
            assert!(is_public(address.parse().expect(address)), "{address}");
        }
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "10.1.2.3",
            "100.64.0.1",
            "100.100.100.200",
            "127.0.0.1",
            "127.255.255.255",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.168.1.1",
            "198.19.0.1",
            "224.0.0.1",
            "239.1.1.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:8.8.8.8",
            "::ffff:10.0.0.1",
            "64:ff9b::a00:1",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2002:a00:1::1",
            "3fff::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!is_public(address.parse().expect(address)), "{address}");
        }
    }
}
