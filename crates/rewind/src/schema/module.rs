//! Virtual tables: the module's name and arguments in the text that made one.

use super::Column;

/// The module's name in `CREATE VIRTUAL TABLE name USING module(…)`, in lower case.
pub(super) fn name(sql: &str) -> String {
    let plain: String = unquoted(sql).map(|(_, c)| c.to_ascii_lowercase()).collect();
    let mut words = plain.split(|c: char| c.is_whitespace() || c == '(').filter(|w| !w.is_empty());
    words.find(|word| *word == "using").and(words.next()).unwrap_or_default().to_owned()
}

/// The characters outside of quotes, with their places; a space for each quoted part.
fn unquoted(sql: &str) -> impl Iterator<Item = (usize, char)> {
    let mut quoted_until = None;
    // A doubled quote within quotes ends them and begins others, which leaves out the same characters.
    sql.char_indices().filter_map(move |(at, c)| match (quoted_until, c) {
        (Some(end), c) => {
            quoted_until = Some(end).filter(|end| *end != c);
            None
        }
        (None, '"' | '`' | '\'' | '[') => {
            quoted_until = Some(if c == '[' { ']' } else { c });
            Some((at, ' '))
        }
        (None, c) => Some((at, c)),
    })
}

/// Adds the types of the columns of a `vec0` table, which SQLite does not know: `float[3]`, `int8[8]`, `bit[8]`, `text`.
///
/// Its arguments are words without quotes: <https://alexgarcia.xyz/sqlite-vec/features/vec0.html>.
pub(super) fn declare(columns: &mut [Column], sql: &str) {
    let Some((open, _)) = unquoted(sql).find(|(_, c)| *c == '(') else { return };
    let arguments = sql[open + 1..].trim_end().trim_end_matches(')').to_ascii_lowercase();
    for argument in arguments.split(',') {
        // `+note text` is a column that is only stored.
        let argument = argument.trim().trim_start_matches('+');
        let Some((name, rest)) = argument.split_once(char::is_whitespace) else { continue };
        let rest = rest.trim();
        // `b int8 [8]` has a space before its dimensions, which are part of the type.
        let dimensions = rest.find(']').map(|at| at + 1);
        let end = dimensions.or_else(|| rest.find(char::is_whitespace)).unwrap_or(rest.len());
        if let Some(column) = columns.iter_mut().find(|column| column.name.eq_ignore_ascii_case(name)) {
            column.declared = rest[..end].split_whitespace().collect();
        }
    }
}

/// SQL that converts a stored vector to what `vec0` accepts: it would read a plain BLOB as floats.
pub(crate) fn as_vector(column: &Column, value: &str) -> String {
    match column.declared.split_once('[').map(|(element, _)| element) {
        Some("int8" | "i8") => format!("vec_int8({value})"),
        Some("bit") => format!("vec_bit({value})"),
        _ => value.to_owned(),
    }
}

/// Whether an FTS5 table was made with `content=…`: <https://sqlite.org/fts5.html#external_content_and_contentless_tables>.
pub(crate) fn has_outside_content(sql: &str) -> bool {
    let squeezed: String = sql.chars().filter(|c| !c.is_whitespace()).collect::<String>().to_ascii_lowercase();
    squeezed.contains(",content=") || squeezed.contains("(content=")
}

#[cfg(test)]
mod tests {
    use super::{as_vector, declare, name};
    use crate::schema::Column;

    #[test]
    fn the_module_is_found_behind_any_name() {
        assert_eq!(name("CREATE VIRTUAL TABLE \"using x(\" USING VEC0(a float[2])"), "vec0");
        assert_eq!(name("create virtual table [a] using\nfts5 (b)"), "fts5");
        assert_eq!(name("CREATE TABLE t (a)"), "");
    }

    #[test]
    fn columns_of_vectors_have_their_types() {
        let column = |name: &str| Column {
            name: name.to_owned(),
            declared: String::new(),
            not_null: false,
            generated: false,
            key_place: 0,
        };
        let mut columns = ["id", "A", "b", "c", "d", "note", "vec0_n"].map(column);
        let sql = "CREATE VIRTUAL TABLE \"vec0 (x int8[1])\" USING Vec0 ( id integer primary key, a  FLOAT[3] distance_metric=cosine,\n\
                   b int8 [8], c bit[16], d i8[4], +note text, vec0_n text partition key )";
        declare(&mut columns, sql);
        let declared: Vec<&str> = columns.iter().map(|c| c.declared.as_str()).collect();
        assert_eq!(declared, ["integer", "float[3]", "int8[8]", "bit[16]", "i8[4]", "text", "text"]);
        let values: Vec<String> = columns.iter().map(|c| as_vector(c, "x")).collect();
        assert_eq!(values, ["x", "x", "vec_int8(x)", "vec_bit(x)", "vec_int8(x)", "x", "x"]);
    }
}
