//! What a rollback over several layers would do, and what stands against it: nothing is locked for long, nothing is written.

use ic_base::{CheckpointId, Code, CompensationId, Diagnosis, DispatchId, Result, Seq};
use ic_checkpoint::record::Checkpoint;
use ic_checkpoint::restore::Strategy;
use ic_events::Cut;
use ic_journal::Force;
use ic_journal::layer::{self, Layer};
use ic_kernel::Kernel;
use ic_phase::Run;
use ic_saga::owner::OwnerLock;
use ic_store::Snapshot;
use ic_worktree::files_of_database;
use ic_worktree::{Deed, Report, RestoreRequest, Settings, Watch, Which, Workspace};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::Plan;
use super::apply::{Request, Rollback};
use super::beside;
use super::data;
use super::leaving::{self, LeavingCommit};
use super::own::{self, OwnCommit};
use super::whole::{Effects, Parts, Refusal, Whole, WholeRequest, WholeStatus};
use crate::compensation::{self, Scope};

/// All layers that mean anything in a project: rows only where a state database is configured.
pub fn all_layers(settings: &Settings) -> Vec<Layer> {
    let has_rows = settings.state.is_some();
    Layer::ALL.into_iter().filter(|layer| *layer != Layer::Data || has_rows).collect()
}

pub(super) fn plan(
    kernel: &Kernel,
    settings: &Settings,
    request: &WholeRequest<'_>,
    layers: &[Layer],
    watch: &Watch,
) -> Result<Whole> {
    let mut rollback = kernel.read(|snapshot| {
        kernel.calling_dispatch(snapshot)?;
        super::apply::planned(kernel, snapshot, &Request { expect_plan: None, ..request.base })
    })?;
    let mut parts = Parts::default();
    let plan = &rollback.plan;
    OwnerLock::require_free(kernel.store(), &plan.run.id)?;
    if layers.contains(&Layer::Effects) {
        parts.effects = Some(kernel.read(|snapshot| plan_effects(snapshot, plan, request.force.past_pivot))?);
    }
    let mut refused = Vec::new();
    if has_tree(layers) {
        let mut tree = decided(request, &mut refused, |request| {
            plan_tree(kernel, settings, request, layers, (plan, &mut parts.own_commits), watch)
        })?;
        // The rollback is refused as a whole, and says so in one place.
        tree.refusal = None;
        parts.commits = match &tree.git {
            Some(git) => {
                let ground = (tree.target.root.as_path(), &git.plan);
                Some(kernel.read(|snapshot| leaving::commits(snapshot, &plan.run, ground))?)
            }
            None => None,
        };
        parts.tree = Some(tree);
    }
    if layers.contains(&Layer::Data) {
        parts.data = Some(decided(request, &mut refused, |request| {
            data::plan(kernel, settings, &plan.run, layers, (plan.cut.seq, request.force.files))
        })?);
    }
    refused.extend(refusals(&parts, request));
    if layers != [Layer::Workflow] {
        rollback.plan_hash = hash(&rollback, (layers, request.force), parts.effects.as_ref(), &parts);
    }
    if let Some(expected) = request.base.expect_plan
        && expected != rollback.plan_hash
    {
        return Err(Diagnosis::new(
            Code::PlanChanged,
            "The plan is not the expected one: something changed since it was made.",
        )
        .hint("look at the new plan: add --dry-run and leave out --expect-plan")
        .detail("expected", expected)
        .detail("plan_hash", rollback.plan_hash));
    }
    Ok(Whole {
        rollback,
        layers: layers.to_vec(),
        parts,
        status: WholeStatus::Planned,
        steps: Vec::new(),
        refusals: refused,
    })
}

/// Plans a part of a rollback. A preview notes a refusal that a flag decides, and shows what then would be; so it names all of them, where
/// the deed ends at the first.
fn decided<'r, T>(
    request: &WholeRequest<'r>,
    refused: &mut Vec<Refusal>,
    mut plan: impl FnMut(&WholeRequest<'r>) -> Result<T>,
) -> Result<T> {
    let mut request = request.clone();
    loop {
        let error = match plan(&request) {
            Err(error) if request.base.dry_run => error,
            done => return done,
        };
        let decision = Force::of_tree(error.code()).filter(|by| request.force.or(*by) != request.force);
        let Some(decision) = decision else { return Err(error) };
        request.force = request.force.or(decision);
        refused.push(Refusal { error, flag: decision.flags().first().copied() });
    }
}

pub(super) fn plan_effects(snapshot: &Snapshot<'_>, plan: &Plan, force: bool) -> Result<Effects> {
    let undo = compensation::plan(snapshot, &plan.run, &Scope::After(plan.cut.clone()), force)?;
    Ok(Effects {
        compensations: undo.undo().cloned().collect(),
        left: undo.left().cloned().collect(),
        pivot: undo.pivot,
    })
}

fn plan_tree(
    kernel: &Kernel,
    settings: &Settings,
    request: &WholeRequest<'_>,
    layers: &[Layer],
    (plan, own_commits): (&Plan, &mut Option<Vec<OwnCommit>>),
    watch: &Watch,
) -> Result<Report> {
    if let Some(only) = &plan.cut.only {
        let (report, commits) = plan_without(kernel, settings, request, (plan, only), watch)?;
        *own_commits = Some(commits);
        return Ok(report);
    }
    let target = target(kernel, &plan.run, &plan.cut)?;
    require_content(&target, plan)?;
    require_project(&plan.run, &target.id, "roll the run back alone: --layer=workflow")?;
    let workspace = Workspace::of_run(kernel, &plan.run, settings)?;
    let strategy = strategy(&workspace, layers);
    let restore = restore_request(&target, strategy, request, true);
    let database =
        settings.state.as_ref().filter(|_| layers.contains(&Layer::Data)).map(|state| &state.database);
    let keep = database.map(|database| files_of_database(&workspace.root, database)).unwrap_or_default();
    let deed = Deed { keep, until: Seq::MAX, did: Vec::new() };
    let restored = ic_worktree::restore_into(&workspace, target.clone(), deed, &restore, watch);
    let mut report = restored.map_err(|error| {
        match error.code() {
            Code::GitUnsupported | Code::GitInProgress | Code::GitBusy | Code::ForeignCommits
                if strategy == Strategy::Full =>
            {
                let rest = layer::all_but(layers, Layer::Git);
                let (theirs, forced) = match (error.code(), request.keep_theirs) {
                    (Code::ForeignCommits, false) => {
                        ("", "; or take them off their branch all the same: --force-commits")
                    }
                    // A file can be left out, a commit below others can not.
                    (Code::ForeignCommits, true) => {
                        (" --keep-theirs", "; or take them off their branch all the same: --force-commits")
                    }
                    (_, true) => (" --keep-theirs", ""),
                    _ => ("", ""),
                };
                let wait = if error.code() == Code::GitBusy { "wait until git is done, or " } else { "" };
                error.hint(format!("{wait}leave git as it is: --layer={rest}{theirs}{forced}"))
            }
            Code::WorkRunning => {
                error.hint("end it first; or roll back beside it all the same: --force-workers")
            }
            _ => error,
        }
    })?;
    if request.beside_runs && report.conflicts.is_empty() && !request.force.files {
        let paths = report.plan.steps.iter().map(|step| step.path.0.as_slice());
        report.conflicts = beside::conflicts(kernel, &workspace, &target.id, paths)?;
    }
    Ok(report)
}

/// What the tree is to become without the work of one dispatch, and the commits of that work.
fn plan_without(
    kernel: &Kernel,
    settings: &Settings,
    request: &WholeRequest<'_>,
    (plan, only): (&Plan, &DispatchId),
    watch: &Watch,
) -> Result<(Report, Vec<OwnCommit>)> {
    let workspace = Workspace::of_run(kernel, &plan.run, settings)?;
    let own::OwnWork { before, changes, commits } = own::of_dispatch(&workspace, only)?;
    require_project(&plan.run, &before.id, "undo the record alone: --layer=workflow")?;
    let restore = RestoreRequest {
        beside_others: true,
        compares_all: false,
        ..restore_request(&before, Strategy::FilesOnly, request, true)
    };
    let report = ic_worktree::restore_without(&workspace, before.clone(), changes, &restore, watch)?;
    Ok((report, commits))
}

pub(super) fn hash(
    rollback: &Rollback,
    (layers, force): (&[Layer], Force),
    effects: Option<&Effects>,
    parts: &Parts,
) -> String {
    let effects = effects.map(|effects| {
        let ids = |list: &mut dyn Iterator<Item = &CompensationId>| {
            list.map(ToString::to_string).collect::<Vec<_>>()
        };
        json!([
            ids(&mut effects.compensations.iter().map(|c| &c.id)),
            ids(&mut effects.left.iter().map(|c| &c.id))
        ])
    });
    let tree = parts.tree.as_ref().map(|tree| tree.plan_hash.clone());
    let data = parts.data.as_ref().map(|data| json!([data.database.to_string_lossy(), data.rows]));
    let layers: Vec<&str> = layers.iter().map(|layer| layer.as_str()).collect();
    let mut whole = json!({
        "workflow": rollback.plan_hash, "layers": layers, "effects": effects, "tree": tree, "data": data,
    });
    // Only where something is decided: what was seen without a decision is no plan with one.
    if force != Force::default() {
        whole["force"] = json!(force.flags());
    }
    ic_events::hex(&Sha256::digest(whole.to_string().as_bytes()).into())
}

/// Whether the layers mean anything of the working tree.
pub(super) fn has_tree(layers: &[Layer]) -> bool {
    layers.contains(&Layer::Files) || layers.contains(&Layer::Git)
}

/// What of the tree the layers mean. Files and git are files alone where there is no git, or where it is not recorded.
fn strategy(workspace: &Workspace<'_>, layers: &[Layer]) -> Strategy {
    let has_git = workspace.has_git();
    match (layers.contains(&Layer::Files), layers.contains(&Layer::Git)) {
        (true, true) if has_git => Strategy::Full,
        (true, _) => Strategy::FilesOnly,
        (false, _) => Strategy::GitOnly,
    }
}

/// The checkpoint of the place that the cut is at. Errors: `no_checkpoint`: never "the nearest".
pub(super) fn target(kernel: &Kernel, run: &Run, cut: &Cut) -> Result<Checkpoint> {
    kernel.read(|snapshot| ic_point::checkpoint_at(snapshot, run, cut.seq))?.ok_or_else(|| {
        Diagnosis::new(
            Code::NoCheckpoint,
            format!("The run took no checkpoint there (event {}).", cut.seq),
        )
        .hint("roll the record back alone: --layer=workflow; or restore a checkpoint of your choice: ic checkpoint list")
        .detail("cut_seq", cut.seq)
    })
}

/// Errors: `no_checkpoint` if the content of a point's checkpoint was pruned.
fn require_content(target: &Checkpoint, plan: &Plan) -> Result<()> {
    let (Some(point), Some(at)) = (&plan.point, target.pruned_at) else { return Ok(()) };
    Err(Diagnosis::new(
        Code::NoCheckpoint,
        format!("The checkpoint of {point} was pruned on {at}: its files are gone."),
    )
    .hint("choose another point, or roll the run back alone: --layer=workflow")
    .detail("checkpoint_id", target.id.as_str()))
}

/// Errors: `foreign_root` if the project of a run is not where it was; `way`: what can be done about it.
pub(super) fn require_project(run: &Run, kept: &CheckpointId, way: &str) -> Result<()> {
    // A directory within a work tree that is gone is brought back like any other.
    if ic_worktree::root_of(&run.project_dir).is_dir() {
        return Ok(());
    }
    let project = run.project_dir.display();
    Err(Diagnosis::new(
        Code::ForeignRoot,
        format!("The project of the run, {project}, is gone or has moved. Nothing was changed."),
    )
    .hint(format!(
        "{way}; its files into another directory, from there: ic checkpoint restore {} --into --dry-run",
        kept.short()
    ))
    .detail("project", project.to_string()))
}

fn restore_request<'a>(
    target: &'a Checkpoint,
    strategy: Strategy,
    request: &WholeRequest<'_>,
    dry_run: bool,
) -> RestoreRequest<'a> {
    RestoreRequest {
        which: Which::Id(target.id.as_str()),
        strategy: Some(strategy),
        paths: &[],
        mine: request.mine,
        dry_run,
        force: request.force,
        keep_theirs: request.keep_theirs,
        into: false,
        compares_all: true,
        beside_others: false,
        expect_plan: None,
    }
}

/// The refusals of a plan: `pivot`, `foreign_commits`, `file_conflict`.
pub(super) fn refusals(parts: &Parts, request: &WholeRequest<'_>) -> Vec<Refusal> {
    let effects = parts.effects.as_ref().filter(|effects| !effects.left.is_empty()).map(refused_effects);
    let is_decided = request.force.files || request.keep_theirs;
    let tree =
        parts.tree.as_ref().filter(|tree| !tree.conflicts.is_empty() && !is_decided).map(refused_files);
    let pushed = parts.commits.as_deref().filter(|_| !request.force.commits).and_then(refused_pushed);
    effects.into_iter().chain(pushed).chain(tree).collect()
}

/// Others may have what a remote has.
fn refused_pushed(commits: &[LeavingCommit]) -> Option<Refusal> {
    let is_pushed = |commit: &&LeavingCommit| commit.described.as_ref().is_some_and(|one| one.is_pushed);
    let pushed: Vec<&LeavingCommit> = commits.iter().filter(is_pushed).collect();
    let first = pushed.first()?;
    let short = first.sha.get(..12).unwrap_or(&first.sha);
    let more = match pushed.len() - 1 {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    let error = Diagnosis::new(
        Code::ForeignCommits,
        format!("The commit {short}{more} would leave its branch, and a remote has it. Nothing was changed."),
    )
    .hint("--force-commits takes it off its branch here, and not there; to leave git as it is: --layer=workflow,effects,files")
    .detail("commits", pushed.iter().map(|commit| json!({ "commit": commit.sha })).collect::<Vec<_>>());
    Some(Refusal { error, flag: Some("--force-commits") })
}

fn refused_effects(effects: &Effects) -> Refusal {
    let steps: Vec<&str> = effects.left.iter().map(|left| left.step.as_str()).collect();
    let (what, before): (String, Vec<&str>) = match effects.pivot.as_deref() {
        Some(pivot) => {
            (format!("The step {pivot}"), steps.iter().copied().filter(|step| *step != pivot).collect())
        }
        None => ("Something that came after them".to_owned(), steps),
    };
    let before = if before.is_empty() { String::new() } else { format!(": {}", before.join(", ")) };
    let error = Diagnosis::new(
        Code::Pivot,
        format!(
            "{what} cannot be undone, and nothing that was done before it is undone without it{before}. Nothing was changed."
        ),
    )
    .hint("--past-pivot undoes the rest all the same; --dry-run shows them")
    .detail("left", effects.left.iter().map(|left| left.id.to_string()).collect::<Vec<_>>());
    Refusal { error, flag: Some("--past-pivot") }
}

fn refused_files(tree: &Report) -> Refusal {
    let error = ic_worktree::refused(tree)
        .hint("--force-files restores them all the same, --keep-theirs leaves these paths as they are; --dry-run lists them");
    Refusal { error, flag: Some("--force-files") }
}
