//! What the documents say of coding agents.

use ic_session::clients::Client;

use super::files::docs;

#[test]
fn each_client_is_in_the_table_of_its_files() {
    let text = std::fs::read_to_string(docs("AGENTS.md")).expect("the document");
    for client in Client::ALL {
        let name = format!("| `{}` |", client.name);
        let row = text.lines().find(|line| line.starts_with("| ") && line.contains(&name));
        let row = row.unwrap_or_else(|| panic!("docs/AGENTS.md has no row for {}", client.name));
        for file in [client.hook_files[0], client.server_files[0]] {
            assert!(row.contains(&format!("`{file}`")), "{row}: not {file}");
        }
    }
}
