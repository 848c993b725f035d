//! What an older version left when it was killed in the midst of an operation, at each moment that its ledger committed.

use ic_testkit::{ProjectState, Random, TestWorld, long, tell};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OptionalExtension};

use crate::project::{call, stands, state};
use crate::stores::{Stores, versions};

/// How many of the moments of an operation are tried when it is not at length: the first, the last, and some between.
const FEW: usize = 5;

/// A world that an operation left half done, and how it is before and after.
pub(crate) struct Half {
    pub(crate) world: TestWorld,
    /// The call that was killed.
    pub(crate) words: Vec<String>,
    /// For messages: the version, the operation and the moment.
    pub(crate) when: String,
    before: Reference,
    after: Reference,
    /// The effect that its undo had undone when the process died before it could say so.
    again: Option<String>,
}

/// A world that nothing interrupted.
#[derive(Clone)]
pub(crate) struct Reference {
    pub(crate) state: ProjectState,
    pub(crate) stands: Option<(String, String)>,
    pub(crate) undone: String,
}

impl Reference {
    fn of(world: &TestWorld) -> Self {
        Self { state: state(world), stands: stands(world), undone: world.outside.text("undone") }
    }
}

/// Leads every half of an operation to an end, in every version's stores.
pub(crate) fn every_half(operation: &str, end: impl Fn(&Half)) {
    for stores in versions(operation) {
        let before = Reference::of(&stores.world(&format!("{operation}/before")));
        let after = Reference::of(&stores.world(&format!("{operation}/after")));
        let moments = moments(&stores, operation);
        tell(&format!("{} halves of {operation} of {}", moments.len(), stores.name));
        for moment in moments {
            let world = stores.world(&format!("{operation}/{moment}"));
            let half = Half {
                again: undone_untold(&world),
                world,
                words: stores.words(operation),
                when: format!("{}, {operation}/{moment}", stores.name),
                before: before.clone(),
                after: after.clone(),
            };
            call(&half.world, &["events", "verify"], &[0], &half.when);
            end(&half);
            half.world.cli.assert_sound(&half.when);
        }
    }
}

/// The step of an effect that was undone, and whose undo the ledger has under way.
fn undone_untold(world: &TestWorld) -> Option<String> {
    const SQL: &str = "SELECT step FROM compensations WHERE state = 'running' AND child IS NOT NULL";
    let step: Option<String> = ledger(world).query_row(SQL, [], |row| row.get(0)).optional().expect("ask it");
    step.filter(|step| world.outside.text("undone").lines().last() == Some(step))
}

/// A connection to the ledger that leaves the log in place when it is closed.
fn ledger(world: &TestWorld) -> Connection {
    let ledger = Connection::open(world.cli.db()).expect("open the ledger");
    ledger.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).expect("keep the log");
    ledger
}

fn moments(stores: &Stores, operation: &str) -> Vec<String> {
    let mut all = stores.names(operation);
    all.retain(|name| name.bytes().all(|b| b.is_ascii_digit()));
    assert!(all.len() >= 3, "{operation} was interrupted {} times", all.len());
    let mut random = Random::seeded();
    while !long() && all.len() > FEW {
        // The first and the last stay: nothing was written yet, and everything but the end.
        all.remove(1 + random.place_in(all.len() - 2));
    }
    all
}

/// The world after an operation that an older version finished, in every version's stores.
pub(crate) fn every_finished(operation: &str, undo: impl Fn(&TestWorld, &Reference, &str)) {
    for stores in versions(operation) {
        let before = Reference::of(&stores.world(&format!("{operation}/before")));
        let world = stores.world(&format!("{operation}/after"));
        let when = format!("{}, {operation}/after", stores.name);
        undo(&world, &before, &when);
        world.cli.assert_sound(&when);
    }
}

impl Half {
    /// Makes the call that was killed once more, which must end with one of these exit codes.
    pub(crate) fn again(&self, exits: &[i32]) {
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        call(&self.world, &words, exits, &self.when);
    }

    /// Asserts that everything is as after an operation that nothing interrupted.
    pub(crate) fn assert_is_after(&self) {
        self.assert_outside_is_after();
        state(&self.world).assert_is(&self.after.state, &self.when);
    }

    /// As [`Half::assert_is_after`], but for what the ledger says of the interruption.
    pub(crate) fn assert_outside_is_after(&self) {
        self.assert_outside_but_effects_is_after();
        assert_eq!(self.world.outside.text("undone"), self.wanted(), "{}: effects", self.when);
    }

    /// The effects that are undone by the end, in their order. One whose undo was under way may be there again, as often as the ledger says
    /// that it was tried, unless its command heeds that it was undone.
    fn wanted(&self) -> String {
        let Some(again) = &self.again else { return self.after.undone.clone() };
        let sql = "SELECT attempts FROM compensations WHERE step = ?1 ORDER BY ord DESC LIMIT 1";
        let tries: u32 = ledger(&self.world).query_row(sql, [again], |row| row.get(0)).expect("its tries");
        let undone = self.world.outside.text("undone");
        let times = undone.lines().filter(|line| line == again).count();
        assert!((1..=tries as usize).contains(&times), "{}: {tries} tries: {undone:?}", self.when);
        let line = format!("{again}\n");
        self.after.undone.replacen(&line, &line.repeat(times), 1)
    }

    /// As [`Half::assert_outside_is_after`], where effects that had not been made yet are not undone either: those that were come
    /// last, in the order in which they are undone.
    pub(crate) fn assert_outside_is_after_what_was_made(&self) {
        self.assert_outside_but_effects_is_after();
        let undone = self.world.outside.text("undone");
        let made = self.world.outside.text("did");
        assert!(self.wanted().ends_with(&undone), "{}: undone: {undone:?}", self.when);
        let is_undone = |effect: &str| undone.lines().any(|line| line == effect);
        assert!(made.lines().all(is_undone), "{}: made: {made:?}, undone: {undone:?}", self.when);
    }

    fn assert_outside_but_effects_is_after(&self) {
        state(&self.world).assert_outside_is(&self.after.state, &self.when);
        assert_eq!(stands(&self.world), self.after.stands, "{}", self.when);
    }

    /// Asserts that tree, git and rows are as before the operation, and the run is where it was.
    pub(crate) fn assert_outside_is_before(&self) {
        state(&self.world).assert_outside_is(&self.before.state, &self.when);
        assert_eq!(stands(&self.world), self.before.stands, "{}", self.when);
    }

    /// Asserts that the tree and git are as before the operation.
    pub(crate) fn assert_tree_is_before(&self) {
        assert_tree_is(&self.world, &self.before, &self.when);
    }
}

/// Asserts that the tree and git are as in a world that nothing interrupted.
pub(crate) fn assert_tree_is(world: &TestWorld, wanted: &Reference, when: &str) {
    let state = ProjectState { rows: wanted.state.rows.clone(), ..state(world) };
    state.assert_outside_is(&wanted.state, when);
}
