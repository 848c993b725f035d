//! Projects with runs, dispatches and rollbacks in them.

use super::Project;

/// The ids of a run on the default chain that is in the middle of executing.
pub(crate) struct Story {
    pub(crate) run: String,
    /// Completed, in planned; it recorded commit aaaaaaa1.
    pub(crate) planner: String,
    /// Running, in executing; it recorded commit bbbbbbb2 and src/login.rs.
    pub(crate) builder: String,
    /// Active, in executing, on behalf of the builder.
    pub(crate) agent: String,
}

/// Takes a run from brainstorm to executing, with artifacts, dispatches, an agent and a skip.
pub(crate) fn story(project: &Project) -> Story {
    let run = project.ok("run create --goal 'Add a login' --scope-id sprint-12");
    for (file, phase) in
        [("idea", "brainstorm"), ("review", "brainstorm-reviewed"), ("strategy", "strategized"), ("plan", "planned")]
    {
        project.write(format!("docs/{file}.md"), &format!("{file}\n"));
        project.ok(&format!("run artifact add @ --path docs/{file}.md"));
        if phase != "planned" {
            project.ok("run advance @");
        }
    }
    let planner = project.ok("dispatch create @ --name plan --agent-type claude");
    project.ok(&format!("dispatch start {planner}"));
    project.ok(&format!("dispatch record {planner} --commit aaaaaaa1"));
    project.ok(&format!("dispatch complete {planner} --summary 'a plan'"));
    project.ok("run advance @");
    let builder = project.ok("dispatch create @ --name form --agent-type codex --model large");
    project.ok(&format!("dispatch start {builder} --pid 1"));
    project.ok(&format!("dispatch record {builder} --commit bbbbbbb2 --file src/login.rs"));
    let agent = project.ok(&format!("run agent add @ --type codex --name builder --dispatch {builder}"));
    project.write("src/login.rs", "fn login() {}\n");
    project.ok("run artifact add @ --path src/login.rs --type code");
    project.ok("run skip @ polish --reason 'internal tool'");
    Story { run, planner, builder, agent }
}

/// A run on a short chain of its own, without gates, at `at`.
pub(crate) fn chain(project: &Project, phases: &str, at: &str) -> String {
    let run = project.ok(&format!("run create --goal 'Short chain' --phases {phases}"));
    while project.ok(&format!("run phase {run}")) != at {
        project.ok(&format!("run advance {run}"));
    }
    run
}
