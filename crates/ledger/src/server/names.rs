//! Addresses of hosts. The C library loads modules to find them, which a static program must not do (docs/adr/0038): a library in Rust reads
//! `/etc/hosts` and `/etc/resolv.conf` instead, in every build alike.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hickory_resolver::TokioResolver;

/// The addresses of a host, or why there are none.
pub(super) async fn addresses(host: &str) -> Result<Vec<IpAddr>, String> {
    if let Ok(address) = host.parse() {
        return Ok(vec![address]);
    }
    if host == "localhost" {
        return Ok(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]);
    }
    let resolver = TokioResolver::builder_tokio().and_then(hickory_resolver::ResolverBuilder::build);
    let found = resolver.map_err(|e| e.to_string())?.lookup_ip(host).await.map_err(|e| e.to_string())?;
    Ok(found.iter().collect())
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::addresses;

    #[test]
    fn an_address_is_its_own_and_localhost_is_here() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let found = |host: &str| runtime.block_on(addresses(host));
        assert_eq!(found("::1").unwrap(), ["::1".parse::<IpAddr>().unwrap()]);
        assert_eq!(found("10.0.0.7").unwrap(), ["10.0.0.7".parse::<IpAddr>().unwrap()]);
        assert!(found("localhost").unwrap().iter().all(IpAddr::is_loopback));
        assert!(found("no-such-host.invalid").is_err());
    }
}
