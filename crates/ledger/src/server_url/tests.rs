//! The forms of a server's address: what is read, what is written back, and what is refused.

use super::{Code, Host, ServerUrl};

#[test]
fn a_url_is_read_and_shown_alike() {
    for (text, shown) in [
        ("postgres://db.example/app", "postgres://db.example/app?ledger=ic"),
        ("postgresql://ann@db:6432/app?ledger=shop", "postgres://ann@db:6432/app?ledger=shop"),
        (" postgres://a,b:1/app\n", "postgres://a,b:1/app?ledger=ic"),
        (
            "postgres:///app?host=/run/postgresql&port=5433",
            "postgres:///app?host=%2Frun%2Fpostgresql&port=5433&ledger=ic",
        ),
        (
            "postgres://db/app?sslmode=verify-full&sslrootcert=/etc/ca.pem",
            "postgres://db/app?ledger=ic&sslmode=verify-full&sslrootcert=%2Fetc%2Fca.pem",
        ),
        // As providers write it: encrypted is verified, which is more than was asked for.
        (
            "postgresql://ann@db/app?sslmode=require&channel_binding=require",
            "postgres://ann@db/app?ledger=ic&sslmode=verify-full&channel_binding=require",
        ),
        (
            "postgresql://ann@db/app?channel_binding=prefer&sslmode=verify-ca",
            "postgres://ann@db/app?ledger=ic&sslmode=verify-full&channel_binding=prefer",
        ),
    ] {
        let url = ServerUrl::parse(text).unwrap();
        assert_eq!(url.to_string(), shown);
        assert_eq!(ServerUrl::parse(shown).unwrap(), url);
    }
    let url = ServerUrl::parse("postgres://[::1]:1/app").unwrap();
    assert_eq!(url.hosts, [Host::Tcp("::1".to_owned(), 1)]);
    assert_eq!(ServerUrl::parse(&url.to_string()).unwrap(), url);
    let socket = ServerUrl::parse("postgres:///app?host=/tmp/a%2520b").unwrap();
    assert_eq!(socket.hosts, [Host::Socket("/tmp/a%20b".into(), 5432)]);
    assert_eq!(ServerUrl::parse(&socket.to_string()).unwrap(), socket);
    let odd = ServerUrl::parse("postgres://a%40b@db/a%20b%2Fc%3F").unwrap();
    assert_eq!((odd.user.as_deref(), odd.database.as_str()), (Some("a@b"), "a b/c?"));
    assert_eq!(ServerUrl::parse(&odd.to_string()).unwrap(), odd);
}

#[test]
fn what_is_wrong_is_refused_and_no_password_is_shown() {
    for text in [
        "mysql://db/app",
        "postgres://db",
        "postgres://db/",
        "postgres:///app",
        "postgres://db:x/app",
        "postgres://db/app?ledger=",
        "postgres://db/app?ledger=Shop",
        "postgres://db/app?ledger=a%22b",
        "postgres://db/app?ledger=pg_x",
        "postgres://db/app?sslmode=prefer",
        "postgres://db/app?channel_binding=always",
        "postgres://db/app?channel_binding=require&sslmode=disable",
        "postgres://db/app?options=x",
        "postgres://ann:SECRET@db/app",
        "postgres://ann:SECRET@db",
        "postgres://db/app?password=SECRET",
        "postgres://db/app#SECRET",
        "postgres:/ann:SECRET@db/app",
        "jdbc:postgresql://ann:SECRET@db/app",
        "host=db password=SECRET dbname=app",
        "postgres://ann%3ASECRET@db/app",
        "postgres://db/ann:SECRET@app",
        "postgres://db/app?user=ann:SECRET",
        "postgres://db/app?ledger=a&ledger=b",
        "postgres://ann@db/app?user=bob",
        "postgres://db/app?host=other",
        "postgres://[::1/app",
        "postgres://::1/app",
        "postgres://db:0/app",
        "postgres://d%00b/app",
    ] {
        let error = ServerUrl::parse(text).unwrap_err();
        assert_eq!(error.code(), ic_base::Code::InvalidValue, "{text}");
        assert!(!format!("{error:?}").contains("SECRET"), "{text}: {error:?}");
        assert!(ServerUrl::is_meant(text), "{text} is no file");
    }
}

#[test]
fn a_network_is_verified_unless_the_url_says_otherwise() {
    let verified = |text| ServerUrl::parse(text).unwrap().is_verified();
    assert!(verified("postgres://db/app") && verified("postgres://localhost,db/app"));
    assert!(verified("postgres://localhost/app?sslmode=verify-full"));
    assert!(!verified("postgres://localhost/app") && !verified("postgres://127.0.0.1:1/app"));
    assert!(!verified("postgres:///app?host=/run") && !verified("postgres://db/app?sslmode=disable"));
}

#[test]
fn a_program_without_servers_names_the_ledger_that_it_cannot_open() {
    let refusal = ServerUrl::parse("postgres://db.example/app?ledger=shop").unwrap().without_servers();
    assert_eq!(refusal.code(), Code::Usage);
    assert!(refusal.message().contains("postgres://db.example/app?ledger=shop"), "{refusal:?}");
}
