//! The order in which tables are cut.

use ic_base::Result;

use super::table::{CutOrder, CutTable};
use crate::error::misfit;
use crate::schema::ForeignKey;

/// Children before parents; tables that do not hang together keep the order of the configuration.
///
/// A row that follows its parent must go before it, or its parent is not found. Foreign keys may form a circle: they are
/// not enforced meanwhile, and whether every row that stays has its parent is asked afterwards.
/// Errors: `invalid_config` when tables follow each other in a circle.
pub(super) fn children_first(mut cuts: Vec<CutTable>, keys: &[ForeignKey]) -> Result<Vec<CutTable>> {
    let mut sorted = Vec::new();
    while !cuts.is_empty() {
        let is_followed = |cut: &CutTable| {
            cuts.iter().any(
                |other| matches!(&other.order, CutOrder::Follow { parent, .. } if *parent == cut.info.name),
            )
        };
        let is_referred_to = |cut: &CutTable| {
            let into = keys.iter().filter(|key| key.parent == cut.info.name && key.child != key.parent);
            into.into_iter().any(|key| cuts.iter().any(|other| other.info.name == key.child))
        };
        let next = cuts
            .iter()
            .position(|cut| !is_followed(cut) && !is_referred_to(cut))
            .or_else(|| cuts.iter().position(|cut| !is_followed(cut)));
        let Some(next) = next else {
            let names: Vec<&str> = cuts.iter().map(|cut| cut.info.name.as_str()).collect();
            return Err(misfit(format!("These tables follow each other in a circle: {}.", names.join(", "))));
        };
        sorted.push(cuts.remove(next));
    }
    Ok(sorted)
}
