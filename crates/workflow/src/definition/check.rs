//! Makes a definition from a file, if all of it is valid.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use ic_base::graph::Graph;
use ic_base::{Label, Result};
use ic_kernel::config::explain::key as quoted;
use ic_kernel::config::scalar::ConfigScalar;
use serde::de::IgnoredAny;
use serde_saphyr::Spanned;

use super::compensate::compensate;
use super::explain::{did_you_mean, invalid};
use super::file::{self, DefinitionFile, FileText, Loose, MAX_STEPS};
use super::value::{At, argv, choice, directory, environment, label, prose, retries, script, timeout};
use super::{Definition, LAST_PHASE, StepCommand, StepFailurePolicy, StepShell, Strategy, WorkflowStep};

/// The name of a workflow without one, if its file's name is not usable either.
const NAME: &str = "workflow";

/// The phase of steps without one: the phase of the default chain in which work is done.
const PHASE: &str = "executing";

/// The most phases that the ledger takes in a chain.
const MAX_PHASES: usize = 1_000;

/// The number of steps of a cycle that are named.
const NAMED: usize = 8;

/// The definition in `file`, at `path`; `text` is its source. Errors: `invalid_workflow`.
pub(super) fn definition(path: &Path, file: DefinitionFile, text: &str) -> Result<Definition> {
    let name = match file.name.0 {
        Some(name) => label(path, "the workflow's name", name)?,
        None => name_of(path),
    };
    let goal = file.goal.0.map(|goal| prose(path, "the goal", goal)).transpose()?;
    let on_failure =
        file.on_failure.0.map(|text| choice(path, &text, &StepFailurePolicy::ALL, StepFailurePolicy::as_str));
    let strategy = file.strategy.0.map(|text| choice(path, &text, &Strategy::ALL, Strategy::as_str));
    let (on_failure, strategy) = (on_failure.transpose()?, strategy.transpose()?);
    let (steps, phases) = match file.steps.0 {
        Some(steps) if !steps.value.0.is_empty() => {
            let shell = file.shell.0.map(|value| shell(path, value)).transpose()?;
            all_steps(path, steps.value.0, &shell.unwrap_or_default())?
        }
        Some(steps) => return Err(At::new(path, &steps).wrong("the workflow has no steps")),
        None => {
            return Err(invalid(path, Some((1, 1)), "the workflow has no steps").hint("as in: steps: [{run: make}]"));
        }
    };
    let goal = goal.unwrap_or_else(|| name.clone());
    Ok(Definition { name, goal, phases, steps, on_failure, strategy, text: text.to_owned() })
}

/// The name of a workflow whose file has none: the file's own, without its ending. It must be valid, because a run stores it and parses it
/// again.
fn name_of(path: &Path) -> String {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let name = name.strip_suffix(".yaml").or_else(|| name.strip_suffix(".yml")).unwrap_or(name);
    Label::parse("the workflow's name", name).map_or_else(|_| NAME.to_owned(), |name| name.as_str().to_owned())
}

/// The name of a step without one: its place, from 1. An id that another step has is skipped.
fn default_id(index: usize, given: &HashSet<String>) -> String {
    let own = format!("step-{}", index + 1);
    let mut ids = std::iter::once(own.clone()).chain((2..).map(|n| format!("{own}-{n}")));
    ids.find(|id| !given.contains(id)).unwrap_or(own)
}

/// The steps with their needs, and the chain of phases.
fn all_steps(
    path: &Path,
    list: Vec<Spanned<file::StepFields>>,
    shell: &StepShell,
) -> Result<(Vec<WorkflowStep>, Vec<String>)> {
    // The reader keeps one step beyond the limit, so that the error can name its place.
    if let Some(beyond) = list.get(MAX_STEPS) {
        return Err(At::new(path, beyond).wrong(&format!("more than {MAX_STEPS} steps")));
    }
    let (mut steps, mut wants) = (Vec::with_capacity(list.len()), Vec::with_capacity(list.len()));
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut chain = Chain { path, phases: Vec::new(), begins: HashMap::new() };
    // All ids of the file are collected first: a step without one must not get the id of a later step.
    let given = list.iter().filter_map(|step| step.value.id.0.as_ref()).map(|id| id.value.clone()).collect();
    for (index, raw) in list.into_iter().enumerate() {
        let at = At::new(path, &raw);
        let mut raw = raw.value;
        let (here, id) = match raw.id.0.take() {
            Some(id) => (At::new(path, &id), label(path, "the step's id", id)?),
            None => (at, default_id(index, &given)),
        };
        if let Some(twin) = places.insert(id.clone(), index) {
            let twin: &WorkflowStep = &steps[twin];
            return Err(here.wrong(&format!("the id {} is that of the step on line {}", quoted(&id), twin.line)));
        }
        let phase = chain.phase_of(raw.phase.0.take())?;
        wants.push(raw.needs.0.take().unwrap_or_default());
        steps.push(step(path, at, id, phase, raw, shell)?);
    }
    // Only now, because a step may need one that comes later in the file.
    for (index, wanted) in wants.iter().enumerate() {
        steps[index].needs = needs(path, &steps[index].id, wanted, &places)?;
    }
    refuse_cycles(path, &steps, &wants)?;
    refuse_later_phases(path, &steps, &wants, &places, &chain)?;
    // A run is completed by reaching the last phase, so the steps need one after theirs.
    chain.phases.push(LAST_PHASE.to_owned());
    Ok((steps, chain.phases))
}

/// The step, without its needs.
fn step(
    path: &Path,
    at: At<'_>,
    id: String,
    phase: String,
    raw: file::StepFields,
    usual: &StepShell,
) -> Result<WorkflowStep> {
    let Some(command) = raw.run.0 else {
        return Err(at
            .wrong(&format!("the step {} has no command", quoted(&id)))
            .hint("as in: run: ./plan.sh  or  run: [\"./plan.sh\", \"argument\"]"));
    };
    Ok(WorkflowStep {
        id,
        phase,
        run: run(path, command, raw.shell.0, usual)?,
        needs: Vec::new(),
        timeout: timeout(path, raw.timeout)?,
        retries: retries(path, raw.retries)?,
        directory: directory(path, raw.cwd)?,
        environment: environment(path, raw.env)?,
        compensate: raw.compensate.0.map(|value| compensate(path, value)).transpose()?,
        line: at.line(),
    })
}

/// A command; `own` is the step's shell, `usual` that of the workflow.
fn run(
    path: &Path,
    command: Spanned<Loose<IgnoredAny>>,
    own: Option<Spanned<Loose<IgnoredAny>>>,
    usual: &StepShell,
) -> Result<StepCommand> {
    let at = At::new(path, &command);
    let other = |found: &ConfigScalar| Err(at.wrong(&found.instead_of("a command, as text or as a list,")));
    let text = match command.value {
        Loose::Scalar(ConfigScalar::Text(text)) => script(at, text)?,
        // `true` and `false` are programs too.
        Loose::Scalar(ConfigScalar::Flag(flag)) => flag.to_string(),
        Loose::Scalar(found) => return other(&found),
        Loose::Mapping(_) => return other(&ConfigScalar::Mapping),
        Loose::List(words) => {
            return match own {
                None => argv(path, at, words).map(StepCommand::Argv),
                Some(shell) => Err(At::new(path, &shell)
                    .wrong("the step runs a program without a shell")
                    .hint("take out `shell`, or write the command as text: run: \"./plan.sh argument\"")),
            };
        }
    };
    let shell = own.map_or_else(|| Ok(usual.clone()), |value| shell(path, value))?;
    Ok(StepCommand::Script { text, shell })
}

fn shell(path: &Path, value: Spanned<Loose<IgnoredAny>>) -> Result<StepShell> {
    let at = At::new(path, &value);
    let other = |found: &str| {
        Err(at.wrong(&format!("{found} is no shell")).hint("sh, bash, or a program and its arguments, as in: [sh, -c]"))
    };
    match value.value {
        Loose::Scalar(ConfigScalar::Text(text)) if text == "sh" => Ok(StepShell::Sh),
        Loose::Scalar(ConfigScalar::Text(text)) if text == "bash" => Ok(StepShell::Bash),
        Loose::Scalar(ConfigScalar::Text(text)) => other(&quoted(&text)),
        Loose::Scalar(found) => Err(at.wrong(&found.instead_of("a shell,"))),
        Loose::Mapping(_) => Err(at.wrong(&ConfigScalar::Mapping.instead_of("a shell,"))),
        Loose::List(words) => argv(path, at, words).map(StepShell::Own),
    }
}

/// The chain of phases, as far as it has been read.
struct Chain<'f> {
    path: &'f Path,
    phases: Vec<String>,
    /// The index of each phase in `phases`.
    begins: HashMap<String, usize>,
}

impl Chain<'_> {
    /// The phase of the next step: the one it names, else that of the step before, else [`PHASE`].
    fn phase_of(&mut self, named: Option<FileText>) -> Result<String> {
        let Some(text) = named else {
            if self.phases.is_empty() {
                self.begins.insert(PHASE.to_owned(), 0);
                self.phases.push(PHASE.to_owned());
            }
            return Ok(self.phases.last().cloned().unwrap_or_default());
        };
        let at = At::new(self.path, &text);
        let phase = label(self.path, "the phase", text)?;
        if phase == LAST_PHASE {
            return Err(at
                .wrong(&format!("the phase `{LAST_PHASE}` ends every chain, and no step runs in it"))
                .hint("give the last steps a phase of their own"));
        }
        if self.phases.last() == Some(&phase) {
            return Ok(phase);
        }
        // It is in the chain already, and not at its end: the steps have left it.
        if let Some(index) = self.begins.insert(phase.clone(), self.phases.len()) {
            let next = self.phases.get(index + 1).map_or("", String::as_str);
            return Err(at
                .wrong(&format!("the phase {} returns after {}", quoted(&phase), quoted(next)))
                .hint("put the steps of one phase next to each other, or give this one another phase"));
        }
        // One place is reserved for the end of the chain.
        if self.phases.len() + 1 >= MAX_PHASES {
            return Err(at.wrong(&format!("more than {MAX_PHASES} phases, with `{LAST_PHASE}`")));
        }
        self.phases.push(phase.clone());
        Ok(phase)
    }
}

/// The indexes of the steps that the step `id` needs.
fn needs(path: &Path, id: &str, wanted: &[FileText], places: &HashMap<String, usize>) -> Result<Vec<usize>> {
    let (mut needs, mut seen) = (Vec::with_capacity(wanted.len()), HashSet::with_capacity(wanted.len()));
    for want in wanted {
        let at = At::new(path, want);
        match places.get(&want.value) {
            Some(_) if want.value == id => return Err(at.wrong(&format!("{} needs itself", quoted(id)))),
            Some(index) if seen.insert(*index) => needs.push(*index),
            Some(_) => return Err(at.wrong(&format!("{} stands twice", quoted(&want.value)))),
            None => {
                let wrong = at.wrong(&format!("there is no step {}", quoted(&want.value)));
                return Err(match did_you_mean(&want.value, places.keys().map(String::as_str)) {
                    Some(hint) => wrong.hint(hint),
                    None => wrong.hint("name the id of another step"),
                });
            }
        }
    }
    // In the order of the file, so that the same needs in another order are the same definition.
    needs.sort_unstable();
    Ok(needs)
}

fn refuse_cycles(path: &Path, steps: &[WorkflowStep], wants: &[Vec<FileText>]) -> Result<()> {
    let graph = Graph::new(steps.iter().map(|step| step.needs.clone()).collect());
    let Some(cycle) = graph.cycle() else { return Ok(()) };
    let ids: Vec<&str> = cycle.iter().map(|step| steps[*step].id.as_str()).collect();
    let mut named: Vec<String> = ids.iter().map(|id| quoted(id)).collect();
    if named.len() > NAMED + 1 {
        named.splice(NAMED.., [format!("... ({} more)", ids.len() - NAMED)]);
    }
    // The first one is repeated at the end to show the circle: `a -> b -> a`.
    let first = named.first().cloned().unwrap_or_default();
    named.push(first);
    let what = format!("steps need each other: {}", named.join(" -> "));
    // The place at which the first of them names the second.
    let want = cycle.first().zip(ids.get(1)).and_then(|(step, id)| wants[*step].iter().find(|w| w.value == **id));
    let wrong = want.map_or_else(|| invalid(path, None, &what), |want| At::new(path, want).wrong(&what));
    Err(wrong.hint("take out one of these needs").detail("cycle", ids))
}

fn refuse_later_phases(
    path: &Path,
    steps: &[WorkflowStep],
    wants: &[Vec<FileText>],
    places: &HashMap<String, usize>,
    chain: &Chain<'_>,
) -> Result<()> {
    for (step, wanted) in steps.iter().zip(wants) {
        for want in wanted {
            // `needs` has refused the name of a step that does not exist.
            let Some(other) = places.get(&want.value).and_then(|index| steps.get(*index)) else { continue };
            if chain.begins.get(&other.phase) > chain.begins.get(&step.phase) {
                return Err(At::new(path, want)
                    .wrong(&format!(
                        "{} runs in the phase {} and needs {} of the later phase {}",
                        quoted(&step.id),
                        quoted(&step.phase),
                        quoted(&other.id),
                        quoted(&other.phase)
                    ))
                    .hint("a phase begins when every step of the phases before it is finished"));
            }
        }
    }
    Ok(())
}
