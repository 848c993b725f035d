//! An application with a memory of its own, as the demonstration has one: tasks, and what each needs, in the tables of the
//! profile `devs`.
//!
//! ```text
//! notebook DATABASE add TASK TITLE [NEED...]
//! notebook DATABASE list
//! ```

use std::error::Error;
use std::time::{Duration, UNIX_EPOCH};

use rusqlite::{Connection, OpenFlags, params};

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        [database, "add", task, title, ref needs @ ..] => add(&mut open(database)?, task, title, needs),
        [database, "list"] => list(&open(database)?),
        _ => Err("usage: notebook DATABASE add TASK TITLE [NEED...] | list".into()),
    }
}

fn open(database: &str) -> rusqlite::Result<Connection> {
    let db = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    db.busy_timeout(Duration::from_secs(5))?;
    db.pragma_update(None, "foreign_keys", true)?;
    Ok(db)
}

#[allow(clippy::disallowed_methods, reason = "an application asks the clock itself")]
fn add(db: &mut Connection, task: &str, title: &str, needs: &[&str]) -> Result<(), Box<dyn Error>> {
    let now = i64::try_from(UNIX_EPOCH.elapsed()?.as_millis())?;
    let tx = db.transaction()?;
    tx.execute(
        "INSERT INTO tasks (task_id, title, status, created_at) VALUES (?1, ?2, 'open', ?3)",
        params![task, title, now],
    )?;
    for (n, need) in needs.iter().enumerate() {
        tx.execute(
            "INSERT INTO requirements (req_id, task_id, body, created_at) VALUES (?1, ?2, ?3, ?4)",
            params![format!("{task}.{n}"), task, need, now],
        )?;
    }
    Ok(tx.commit()?)
}

fn list(db: &Connection) -> Result<(), Box<dyn Error>> {
    let mut statement = db.prepare(
        "SELECT t.task_id, t.title, count(r.req_id) FROM tasks t LEFT JOIN requirements r USING (task_id) \
         GROUP BY t.task_id ORDER BY t.created_at",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        println!("{}  {} ({} needs)", row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get::<_, i64>(2)?);
    }
    Ok(())
}
