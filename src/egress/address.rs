//! Which addresses may be reached, whatever a name resolves to.

use std::net::IpAddr;
use std::net::Ipv4Addr;
use std::net::Ipv6Addr;

type NetworkV4 = ([u8; 4], u32);
type NetworkV6 = ([u16; 8], u32);

/// Networks of IPv4 that are not the Internet: the IANA registry of special-purpose addresses, with
/// multicast and what is reserved. Most cloud metadata lies in link-local.
const REFUSED_V4: [NetworkV4; 13] = [
    ([0, 0, 0, 0], 8),
    // Metadata of Alibaba, which would be private.
    ([100, 100, 100, 200], 32),
    ([127, 0, 0, 0], 8),
    // The machine's agent in Azure, which would be public.
    ([168, 63, 129, 16], 32),
    ([169, 254, 0, 0], 16),
    ([192, 0, 0, 0], 24),
    ([192, 0, 2, 0], 24),
    ([192, 88, 99, 0], 24),
    ([198, 18, 0, 0], 15),
    ([198, 51, 100, 0], 24),
    ([203, 0, 113, 0], 24),
    ([224, 0, 0, 0], 4),
    ([240, 0, 0, 0], 4),
];

/// Networks that belong to whoever runs them.
const PRIVATE_V4: [NetworkV4; 4] = [
    ([10, 0, 0, 0], 8),
    ([100, 64, 0, 0], 10),
    ([172, 16, 0, 0], 12),
    ([192, 168, 0, 0], 16),
];
const PRIVATE_V6: NetworkV6 = ([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7);

/// The one part of IPv6 that is given out (`2000::/3`).
const GLOBAL_V6: NetworkV6 = ([0x2000, 0, 0, 0, 0, 0, 0, 0], 3);

/// What in these two is neither: Teredo, benchmarks, ORCHID, documentation, 6to4, and the metadata
/// of Amazon and Google.
const REFUSED_V6: [NetworkV6; 6] = [
    ([0x2001, 0, 0, 0, 0, 0, 0, 0], 23),
    ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32),
    ([0x2002, 0, 0, 0, 0, 0, 0, 0], 16),
    ([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20),
    ([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0], 32),
    ([0xfd20, 0xce, 0, 0, 0, 0, 0, 0], 32),
];

/// Where an address lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zone {
    /// The Internet.
    Public,
    /// A private network, for which a rule needs a word of its own.
    Private,
    /// This machine, link-local, metadata, multicast, or what stands for an address of IPv4
    /// (mapped, NAT64): no rule reaches it.
    Refused,
}

pub fn zone(address: IpAddr) -> Zone {
    let (is_refused, is_private, is_public) = match address {
        IpAddr::V4(address) => {
            let is_in = |networks: &[NetworkV4]| {
                networks
                    .iter()
                    .any(|&(network, bits)| is_in_v4(address, network, bits))
            };
            (is_in(&REFUSED_V4), is_in(&PRIVATE_V4), true)
        }
        IpAddr::V6(address) => {
            let is_in = |networks: &[NetworkV6]| {
                networks
                    .iter()
                    .any(|&(network, bits)| is_in_v6(address, network, bits))
            };
            (
                is_in(&REFUSED_V6),
                is_in(&[PRIVATE_V6]),
                is_in(&[GLOBAL_V6]),
            )
        }
    };
    match (is_refused, is_private, is_public) {
        (false, true, _) => Zone::Private,
        (false, false, true) => Zone::Public,
        _ => Zone::Refused,
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
    fn an_address_is_public_private_or_never_reached() {
        for address in [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "172.32.0.1",
            "223.255.255.255",
            "2606:4700::1",
            "2a00::1",
        ] {
            assert_eq!(
                zone(address.parse().expect(address)),
                Zone::Public,
                "{address}"
            );
        }
        for address in [
            "10.1.2.3",
            "100.64.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "fc00::1",
            "fd12:3456::1",
        ] {
            assert_eq!(
                zone(address.parse().expect(address)),
                Zone::Private,
                "{address}"
            );
        }
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "100.100.100.200",
            "127.0.0.1",
            "127.255.255.255",
            "169.254.169.254",
            "192.0.0.192",
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
            "fd00:ec2::254",
            "fd20:ce::254",
            "168.63.129.16",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert_eq!(
                zone(address.parse().expect(address)),
                Zone::Refused,
                "{address}"
            );
        }
    }
}
