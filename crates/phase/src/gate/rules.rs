//! Which requirements stand at which transition of a run's chain.

use ic_base::{Code, Diagnosis, Label, Result};
use serde::{Deserialize, Serialize};

use super::check::{AuthorRule, GateCheck, Tier};
use crate::chain::Chain;

/// One thing that must hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    /// The question that must be answered with yes.
    pub check: GateCheck,
    /// The phase that it asks about; `None`: the whole run.
    pub phase: Option<Label>,
    /// How much it weighs.
    pub tier: Tier,
    /// Whose artifacts and verdicts count for it.
    pub by: AuthorRule,
}

/// The requirements of a run, by transition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Gates(Vec<Gate>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Gate {
    from: String,
    to: String,
    requirements: Vec<Requirement>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RequirementText {
    check: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    phase: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tier: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    by: Option<String>,
}

impl Gates {
    /// The gates of a run on the default chain that names none (contract, "Defaults").
    pub fn defaults() -> Self {
        let asks = |from: &str, to: &str, check, phase: Option<&str>| Gate {
            from: from.to_owned(),
            to: to.to_owned(),
            requirements: vec![Requirement {
                check,
                phase: phase.map(|phase| Label::from_ledger(phase.to_owned())),
                tier: Tier::Hard,
                by: AuthorRule::Any,
            }],
        };
        let artifact = |from: &str, to: &str| asks(from, to, GateCheck::ArtifactExists, Some(from));
        Self(vec![
            artifact("brainstorm", "brainstorm-reviewed"),
            artifact("brainstorm-reviewed", "strategized"),
            artifact("strategized", "planned"),
            artifact("planned", "executing"),
            asks("executing", "review", GateCheck::AgentsComplete, None),
            asks("review", "polish", GateCheck::VerdictExists, Some("review")),
            artifact("reflect", "done"),
        ])
    }

    /// Gates from JSON: `{"planned→executing": [{"check": "artifact_exists", "phase": "planned", "tier": "hard"}]}`.
    ///
    /// `->` may stand for the arrow. `artifact_exists` and `verdict_exists` without a phase ask of the phase that is left. Errors:
    /// `invalid_value`, naming the transition; `unknown_phase`.
    pub fn parse(json: &str, chain: &Chain) -> Result<Self> {
        let rules: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(json).map_err(|e| invalid(format!("--gates is not a JSON object: {e}.")))?;
        let mut gates = Vec::with_capacity(rules.len());
        for (key, value) in rules {
            let (from, to) = transition(&key, chain)?;
            // A name may contain an arrow, so the form that the ledger writes may be ambiguous though this one is not.
            // In the chain `a`, `b→c`, `a→b`, `c`, the key `a->b→c` has one reading. Written as `a→b→c` it has two.
            transition(&written(&from, &to), chain)?;
            // Two members of the JSON object can name one transition, with different spaces or arrows.
            if gates.iter().any(|g: &Gate| g.from == from && g.to == to) {
                return Err(invalid(format!("The gate of {from} → {to} is given twice.")));
            }
            let texts: Vec<RequirementText> =
                serde_json::from_value(value).map_err(|e| invalid(format!("The gate {key:?}: {e}.")))?;
            let requirements = texts.into_iter().map(|text| requirement(text, &from, chain)).collect::<Result<_>>()?;
            gates.push(Gate { from, to, requirements });
        }
        Ok(Self(gates))
    }

    /// The gates as they stand in the ledger; `None` if they are not gates of this chain.
    pub(crate) fn from_ledger(json: &str, chain: &Chain) -> Option<Self> {
        // The gates are parsed again, because gates that do not fit the chain are damage. What was accepted once is
        // accepted again: the form that is written was tried when the rule was given.
        Self::parse(json, chain).ok()
    }

    /// The gates as JSON, as [`Gates::parse`] reads them.
    pub fn to_json(&self) -> String {
        let rules: serde_json::Map<String, serde_json::Value> = self
            .0
            .iter()
            .map(|gate| {
                let texts: Vec<RequirementText> = gate.requirements.iter().map(RequirementText::from).collect();
                (written(&gate.from, &gate.to), serde_json::json!(texts))
            })
            .collect();
        serde_json::Value::Object(rules).to_string()
    }

    /// What is asked of a run that goes from `from` to `to`.
    ///
    /// A rule for exactly this move wins. Otherwise the rule from `from` to its follower in the chain applies, so that a skipped phase does
    /// not disable the gate of the phase that is left.
    pub fn at(&self, from: &str, to: &str, chain: &Chain) -> &[Requirement] {
        self.find(from, to)
            .or_else(|| chain.follower(from).and_then(|follower| self.find(from, follower)))
            .unwrap_or_default()
    }

    /// Every transition that has rules, in the order they were given.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str, &[Requirement])> {
        self.0.iter().map(|g| (g.from.as_str(), g.to.as_str(), g.requirements.as_slice()))
    }

    fn find(&self, from: &str, to: &str) -> Option<&[Requirement]> {
        self.0.iter().find(|g| g.from == from && g.to == to).map(|g| g.requirements.as_slice())
    }
}

impl From<&Requirement> for RequirementText {
    fn from(requirement: &Requirement) -> Self {
        Self {
            check: requirement.check.as_str().to_owned(),
            phase: requirement.phase.as_ref().map(ToString::to_string),
            tier: Some(requirement.tier.as_str().to_owned()),
            by: Some(requirement.by.as_str().to_owned()).filter(|_| requirement.by != AuthorRule::Any),
        }
    }
}

fn requirement(text: RequirementText, from: &str, chain: &Chain) -> Result<Requirement> {
    let check = GateCheck::parse(&text.check).ok_or_else(|| {
        invalid(format!("{:?} is not a check; the checks are {}.", text.check, GateCheck::WORDS.join(", ")))
    })?;
    // `none` is not among them: only the priority of a call makes a requirement weigh nothing.
    let tier = match text.tier.as_deref() {
        None | Some("hard") => Tier::Hard,
        Some("soft") => Tier::Soft,
        Some(other) => return Err(invalid(format!("{other:?} is not a tier; the tiers are hard and soft."))),
    };
    let phase = match (text.phase, check) {
        (Some(phase), _) => {
            chain.require(&phase)?;
            Some(Label::from_ledger(phase))
        }
        // A verdict on an earlier phase says nothing about the work of this one.
        (None, GateCheck::ArtifactExists | GateCheck::VerdictExists) => Some(Label::from_ledger(from.to_owned())),
        (None, _) => None,
    };
    let is_of_authors = matches!(check, GateCheck::ArtifactExists | GateCheck::VerdictExists | GateCheck::VerdictClean);
    let by = match text.by.as_deref() {
        None => AuthorRule::Any,
        Some("other") if is_of_authors => AuthorRule::Other,
        Some("other") => {
            return Err(invalid(format!(
                "{:?} asks for no word of another: \"by\" is of artifacts and verdicts.",
                text.check
            )));
        }
        Some(by) => return Err(invalid(format!("{by:?} is no author; \"by\" can be \"other\"."))),
    };
    Ok(Requirement { check, phase, tier, by })
}

/// A transition as the ledger keeps it.
fn written(from: &str, to: &str) -> String {
    format!("{from}→{to}")
}

/// Reads `from→to`. Names may themselves contain an arrow, so every split is tried.
fn transition(key: &str, chain: &Chain) -> Result<(String, String)> {
    let mut found = Vec::new();
    for arrow in ["→", "->"] {
        for (at, _) in key.match_indices(arrow) {
            let (from, to) = (key[..at].trim(), key[at + arrow.len()..].trim());
            if let (Some(f), Some(t)) = (chain.index_of(from), chain.index_of(to))
                // A run only advances, so a transition backwards can be no gate.
                && f < t
            {
                found.push((from.to_owned(), to.to_owned()));
            }
        }
    }
    match <[(String, String); 1]>::try_from(found) {
        Ok([one]) => Ok(one),
        Err(found) if found.is_empty() => {
            Err(invalid(format!("{key:?} is not a transition of this chain ({}).", chain.names().join(" → "))))
        }
        Err(_) => Err(invalid(format!("{key:?} can be read as more than one transition."))),
    }
}

fn invalid(message: String) -> Diagnosis {
    Diagnosis::new(Code::InvalidValue, message)
        .hint(r#"as in: --gates '{"planned→executing": [{"check": "artifact_exists", "phase": "planned", "tier": "hard"}]}'"#)
        .detail("value", "--gates")
}

#[cfg(test)]
mod tests {
    use ic_base::Code;

    use super::{GateCheck, Gates};
    use crate::chain::Chain;

    #[test]
    fn defaults_are_of_the_default_chain_and_survive_the_ledger() {
        let chain = Chain::default();
        let gates = Gates::defaults();
        assert_eq!(Gates::from_ledger(&gates.to_json(), &chain), Some(gates.clone()));
        assert_eq!(gates.at("executing", "review", &chain)[0].check, GateCheck::AgentsComplete);
        assert!(gates.at("polish", "reflect", &chain).is_empty());
    }

    #[test]
    fn passing_over_a_skipped_phase_keeps_the_gate_of_the_phase_that_is_left() {
        let chain = Chain::parse("a,b,c").unwrap();
        let gates = Gates::parse(r#"{"a->b": [{"check": "artifact_exists"}]}"#, &chain).unwrap();
        assert_eq!(gates.at("a", "c", &chain).len(), 1);
        let exact = Gates::parse(r#"{"a->b": [{"check": "artifact_exists"}], "a→c": []}"#, &chain).unwrap();
        assert!(exact.at("a", "c", &chain).is_empty());
    }

    #[test]
    fn a_transition_leads_forward_in_the_chain() {
        let chain = Chain::parse("a,b,c").unwrap();
        for key in ["a→a", "b→a", "a→d", "a", "→", ""] {
            let error = Gates::parse(&format!(r#"{{"{key}": []}}"#), &chain).unwrap_err();
            assert!(error.message().contains("is not a transition of this chain (a → b → c)"), "{key}: {error}");
        }
    }

    #[test]
    fn a_transition_that_the_ledger_could_not_read_back_is_refused() {
        let chain = Chain::parse(r#"["a", "b→c", "a→b", "c"]"#).unwrap();
        let error = Gates::parse(r#"{"a->b→c": []}"#, &chain).unwrap_err();
        assert_eq!(error.code(), Code::InvalidValue);
        assert!(error.message().contains("more than one transition"), "{error}");
        let chain = Chain::parse(r#"["a->b", "b→c", "d"]"#).unwrap();
        let gates = Gates::parse(r#"{" a->b -> b→c ": [{"check": "artifact_exists"}]}"#, &chain).unwrap();
        assert_eq!(Gates::from_ledger(&gates.to_json(), &chain), Some(gates.clone()));
        assert_eq!(
            gates.iter().map(|(from, to, asked)| (from, to, asked.len())).collect::<Vec<_>>(),
            [("a->b", "b→c", 1)]
        );
    }

    #[test]
    fn bad_rules_are_refused() {
        let chain = Chain::parse("a,b,c").unwrap();
        for bad in [
            "[]",
            "{",
            r#"{"a": []}"#,
            r#"{"b→a": []}"#,
            r#"{"a→x": []}"#,
            r#"{"a→b": {}}"#,
            r#"{"a→b": [{"check": "nope"}]}"#,
            r#"{"a→b": [{"check": "artifact_exists", "tier": "none"}]}"#,
            r#"{"a→b": [{"check": "artifact_exists", "extra": 1}]}"#,
            r#"{"a→b": [{"check": "verdict_exists", "by": "me"}]}"#,
            r#"{"a→b": [{"check": "agents_complete", "by": "other"}]}"#,
            r#"{"a→b": [], "a->b": []}"#,
        ] {
            assert_eq!(Gates::parse(bad, &chain).unwrap_err().code(), Code::InvalidValue, "{bad}");
        }
        let unknown = r#"{"a→b": [{"check": "artifact_exists", "phase": "z"}]}"#;
        assert_eq!(Gates::parse(unknown, &chain).unwrap_err().code(), Code::UnknownPhase);
    }
}
