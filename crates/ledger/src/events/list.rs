//! Reading events, always in flat memory.

use std::ops::ControlFlow;

use crate::Snapshot;
use ic_base::{Code, Diagnosis, Result, RunId, Seq};

use crate::actor::Actor;
use crate::events::event::{Event, EventSource};
use crate::hash::Hash;

/// The last seq and its hash; 0 and zeros in a new ledger. Errors: `corrupt` if the head row is missing.
pub fn head(snapshot: &Snapshot<'_>) -> Result<(Seq, Hash)> {
    snapshot
        .query_opt("SELECT seq, hash FROM event_head WHERE one = 1", &[], |row| Ok((row.get(0)?, row.get(1)?)))?
        .ok_or_else(|| Diagnosis::new(Code::Corrupt, "The ledger has no head row for its events."))
}

/// The event with this seq. Errors: `event_not_found`.
pub fn get(snapshot: &Snapshot<'_>, seq: Seq) -> Result<Event> {
    let sql = format!("SELECT {} FROM events WHERE seq = $1", Event::COLUMNS);
    snapshot.query_opt(&sql, &[&seq], Event::from_row)?.ok_or_else(|| {
        Diagnosis::new(Code::EventNotFound, format!("There is no event {seq}."))
            .hint("see: ic events tail")
            .detail("seq", seq)
    })
}

/// Who wrote the event with this number; `None` if there is none, or it does not say.
pub fn author(snapshot: &Snapshot<'_>, seq: Seq) -> Result<Option<Actor>> {
    let sql = "SELECT actor FROM events WHERE seq = $1";
    let text = snapshot.query_opt(sql, &[&seq], |row| row.get::<Option<String>>(0))?.flatten();
    text.as_deref().map(Actor::from_text).transpose()
}

/// Gives every event of a run to `visit`, oldest first.
pub fn each_of_run(
    snapshot: &Snapshot<'_>,
    run_id: &RunId,
    visit: impl FnMut(Event) -> Result<ControlFlow<()>>,
) -> Result<()> {
    each_since(snapshot, Some(run_id), 0, i64::MAX, visit)
}

/// Gives at most `limit` events after `since`, of one run or of all, to `visit`, oldest first.
pub fn each_since(
    snapshot: &Snapshot<'_>,
    run_id: Option<&RunId>,
    since: Seq,
    limit: i64,
    mut visit: impl FnMut(Event) -> Result<ControlFlow<()>>,
) -> Result<()> {
    let columns = Event::COLUMNS;
    // Two statements: with `$1 IS NULL OR run_id = $1` in one of them, the index of a run's events could not be used.
    match run_id {
        Some(run) => snapshot.each(
            &format!("SELECT {columns} FROM events WHERE run_id = $1 AND seq > $2 ORDER BY seq LIMIT $3"),
            &[&run.as_str(), &since, &limit],
            |row| visit(Event::from_row(row)?),
        ),
        None => snapshot.each(
            &format!("SELECT {columns} FROM events WHERE seq > $1 ORDER BY seq LIMIT $2"),
            &[&since, &limit],
            |row| visit(Event::from_row(row)?),
        ),
    }
}

/// Which events are looked for among those from before a seq.
#[derive(Debug, Clone, Copy)]
pub struct EventFilter<'a> {
    /// Only those of this run.
    pub run_id: Option<&'a RunId>,
    /// Only those about this kind of thing.
    pub source: Option<EventSource>,
    /// Only those from before this one.
    pub before: Seq,
    /// The most events that are visited.
    pub limit: i64,
}

/// Gives the wanted events to `visit`, newest first: the page of a list that goes back from the newest.
pub fn each_before(
    snapshot: &Snapshot<'_>,
    filter: &EventFilter<'_>,
    mut visit: impl FnMut(Event) -> Result<ControlFlow<()>>,
) -> Result<()> {
    let columns = Event::COLUMNS;
    let (source, before, limit) = (filter.source.map(EventSource::as_str), filter.before, filter.limit);
    match filter.run_id {
        Some(run) => snapshot.each(
            &format!(
                "SELECT {columns} FROM events WHERE run_id = $1 AND seq < $2 AND ($3 IS NULL OR source = $3) \
                 ORDER BY seq DESC LIMIT $4"
            ),
            &[&run.as_str(), &before, &source, &limit],
            |row| visit(Event::from_row(row)?),
        ),
        None => snapshot.each(
            &format!(
                "SELECT {columns} FROM events WHERE seq < $1 AND ($2 IS NULL OR source = $2) ORDER BY seq DESC LIMIT $3"
            ),
            &[&before, &source, &limit],
            |row| visit(Event::from_row(row)?),
        ),
    }
}

/// The seq after which the newest `limit` events of one run or of all stand; 0 if there are no more than that.
pub fn before_newest(snapshot: &Snapshot<'_>, run_id: Option<&RunId>, limit: i64) -> Result<Seq> {
    // `seq > 0` is true of every event. It lets the database follow the index from its end.
    let found = match run_id {
        Some(run) => snapshot.query_opt(
            "SELECT seq FROM events WHERE run_id = $1 AND seq > 0 ORDER BY seq DESC LIMIT 1 OFFSET $2",
            &[&run.as_str(), &limit],
            |row| row.get(0),
        )?,
        None => snapshot.query_opt(
            "SELECT seq FROM events WHERE seq > 0 ORDER BY seq DESC LIMIT 1 OFFSET $1",
            &[&limit],
            |row| row.get(0),
        )?,
    };
    Ok(found.unwrap_or(0))
}

/// Gives the moves forward of a run (advances and overrides) to `visit`, newest first.
pub fn each_crossing_newest_first(
    snapshot: &Snapshot<'_>,
    run_id: &RunId,
    mut visit: impl FnMut(Event) -> Result<ControlFlow<()>>,
) -> Result<()> {
    // The types are not parameters: only in the text of the statement do they lead SQLite to the partial index.
    snapshot.each(
        &format!(
            "SELECT {} FROM events WHERE run_id = $1 AND type IN ('advance', 'override') ORDER BY seq DESC",
            Event::COLUMNS
        ),
        &[&run_id.as_str()],
        |row| visit(Event::from_row(row)?),
    )
}

/// The seq of the event by which a run last moved forward into a phase; 0 for the phase that it began in.
pub fn entered(snapshot: &Snapshot<'_>, run_id: &RunId, phase: &str) -> Result<Seq> {
    // The newest counts: after a rollback, the run moves into the same phase again.
    let found = snapshot.query_opt(
        "SELECT seq FROM events WHERE run_id = $1 AND type IN ('advance', 'override') AND to_state = $2 \
         ORDER BY seq DESC LIMIT 1",
        &[&run_id.as_str(), &phase],
        |row| row.get(0),
    )?;
    Ok(found.unwrap_or(0))
}
