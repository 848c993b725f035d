//! `ic gate ...`

mod check;
mod r#override;
mod rules;

verbs! {
    pub(crate) enum GateVerb {
        Check(check::GateCheckArgs),
        Override(r#override::GateOverrideArgs),
        Rules(rules::GateRulesArgs),
    }
}
