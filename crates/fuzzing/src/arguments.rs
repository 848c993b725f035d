//! JSON and lists from the command line: what is taken, and kept in the ledger as text, is read from there the same.
//!
//! The input is a chain of phases, a NUL, and JSON.

use ic_base::Code;
use ic_effects::EffectAction;
use ic_phase::Chain;
use ic_phase::gate::Gates;
use serde_json::{Map, Value};

/// Reads them.
pub fn arguments(bytes: &[u8]) {
    let Ok(input) = std::str::from_utf8(bytes) else { return };
    let (first, second) = input.split_once('\0').unwrap_or(("", input));
    let given = Chain::parse(first);
    if let Ok(chain) = &given {
        assert_eq!(Chain::parse(&chain.to_json()).expect("a chain"), *chain);
        let names = chain.names();
        assert!(names.iter().enumerate().all(|(at, name)| chain.index_of(name) == Some(at)));
    }
    gates(second, &given.unwrap_or_default());
    metadata(second);
    action(second);
}

fn gates(json: &str, chain: &Chain) {
    match Gates::parse(json, chain) {
        Ok(gates) => {
            let again = Gates::parse(&gates.to_json(), chain).expect("gates of this chain");
            assert_eq!(again, gates);
            for (from, to, requirements) in gates.iter() {
                assert_eq!(gates.at(from, to, chain), requirements);
            }
        }
        Err(error) => assert!(matches!(error.code(), Code::InvalidValue | Code::UnknownPhase)),
    }
}

/// `--metadata` and events: kept as this text, answered from it.
fn metadata(json: &str) {
    let Ok(object) = serde_json::from_str::<Map<String, Value>>(json) else { return };
    let text = Value::Object(object.clone()).to_string();
    assert_eq!(serde_json::from_str::<Map<String, Value>>(&text).expect("an object"), object);
}

fn action(json: &str) {
    let Ok(action) = serde_json::from_str::<EffectAction>(json) else { return };
    let text = serde_json::to_string(&action).expect("an action can be written");
    assert_eq!(serde_json::from_str::<EffectAction>(&text).expect("an action"), action);
    if let Some(how) = action.how() {
        let waited = (1..=3).filter_map(|attempt| how.pause_after(attempt));
        assert!(waited.into_iter().all(|pause| pause.as_secs() <= 300));
    }
}
