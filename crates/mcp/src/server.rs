//! The server: it runs one command for each request of a client.

use std::borrow::Cow;
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use ic_base::{Code, Diagnose, Diagnosis, Result};
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, GetPromptRequestParams, GetPromptResponse,
    Implementation, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, ServerInitializeError};
use rmcp::{ErrorData, RoleServer, ServiceExt};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::catalogue::{self, CatalogueCall, TOOLS};
use crate::command_words::Words;
use crate::commands::{Commands, Said};
use crate::elicitation::{self, AskingWay, Decision};
use crate::lines::{self, Ends};
use crate::step::ConsentStep;
use crate::{answer, prompts, resources, stdio};

const INSTRUCTIONS: &str = "\
ic records every prompt and dispatch with the tree before and after it, and takes any of it back: files, git, outside effects, rows.
Call status first, log for the points, diff to see what changed; checkpoint before something risky, declare_compensation before an outside effect.
undo and redo take two steps: the plan and its hash, then expect_plan; show the person the plan before the second.";

const INSTRUCTIONS_ON_SERVER: &str = "\
ic records every prompt and dispatch. The ledger of this project is on a server: status and log answer; advance, register_artifact, record_work and
complete record as elsewhere; checkpoint, diff, undo, redo and declare_compensation are refused, because files and processes are one machine's own.";

/// How long an answer may take to be written when the server ends.
const TO_WRITE: Duration = Duration::from_millis(200);

/// Serves the protocol on standard input and output until the client goes away, or a signal ends it. Calls that the client made before it
/// went are done first. After one of `signals` the running command ends as it does from a shell, and calls that wait for their turn are not
/// begun. `version`: of this program, for the client.
///
/// Errors: `io_error` if standard input and output cannot be had, or a client speaks another protocol.
pub fn serve(commands: impl Commands, version: &str, signals: &[i32]) -> Result<()> {
    let (input, output) = stdio::take()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .while_doing(|| "starting the server".to_owned())?;
    let result = runtime.block_on(talk(Server::new(commands, version), signals, (input, output)));
    // A read of standard input cannot be cancelled: an ordinary shutdown would wait until the client writes or goes away.
    runtime.shutdown_background();
    result
}

async fn talk<C: Commands>(server: Server<C>, signals: &[i32], (input, output): (File, File)) -> Result<()> {
    let turns = server.turns.clone();
    // The handlers are in place before the first message is read.
    let asked_to_end = asked_to_end(signals)?;
    let Ends { input, output, writing } = lines::between(input, output);
    let conversation = async {
        match server.serve((input, output)).await {
            Ok(running) => running.waiting().await.map(drop).map_err(|error| broken(&error)),
            // A client that starts a server and goes away again has done nothing wrong.
            Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(error) => Err(broken(&error)),
        }
    };
    // Pinned, because after a signal the same conversation is awaited a second time, for the last answer.
    tokio::pin!(conversation);
    let result = tokio::select! {
        result = &mut conversation => result,
        () = asked_to_end => {
            turns.is_ending.store(true, Ordering::SeqCst);
            tokio::select! {
                result = &mut conversation => result,
                () = last_answer(&turns) => Ok(()),
            }
        }
    };
    // A running call ends before this process does: its command may be between two writes.
    let _ = turns.one.acquire().await;
    // Answers may still be on their way. A client that has stopped reading would block this for ever, hence the limit.
    let _ = tokio::time::timeout(TO_WRITE, writing).await;
    result
}

/// Waits until the running call has ended and its answer had time to be written, so that the client knows what was done.
async fn last_answer(turns: &Turns) {
    let _ = turns.one.acquire().await;
    tokio::time::sleep(TO_WRITE).await;
}

fn broken(error: &dyn std::error::Error) -> Diagnosis {
    Diagnosis::new(Code::Io, format!("The conversation with the client broke off: {error}."))
        .hint("a client starts `ic mcp` itself; see docs/MCP.md")
}

/// Ends when one of these signals asks this process to end.
fn asked_to_end(signals: &[i32]) -> Result<impl Future<Output = ()> + use<>> {
    let heard = signals.iter().map(|number| signal(SignalKind::from_raw(*number)));
    let mut heard: Vec<Signal> =
        heard.collect::<std::io::Result<_>>().while_doing(|| "listening for signals".to_owned())?;
    Ok(std::future::poll_fn(move |context| {
        let is_asked = heard.iter_mut().any(|signal| signal.poll_recv(context).is_ready());
        if is_asked { Poll::Ready(()) } else { Poll::Pending }
    }))
}

/// One call at a time: a second one would find the locks of this very process held.
struct Turns {
    /// Never closed: a call that waits learns that the server ends when its turn comes.
    one: Arc<Semaphore>,
    /// Whether the server ends, so that no further call is begun.
    is_ending: AtomicBool,
}

impl Turns {
    fn new() -> Self {
        Self { one: Arc::new(Semaphore::new(1)), is_ending: AtomicBool::new(false) }
    }

    /// Waits until the calls before this one have ended. Errors: `internal` where the server ends.
    async fn next(&self) -> Result<OwnedSemaphorePermit> {
        let ending = || Diagnosis::new(Code::Internal, "The server is ending: nothing was done.");
        let turn = self.one.clone().acquire_owned().await.map_err(|_| ending())?;
        // After the wait, not before it: the signal may have come while this call waited for its turn.
        if self.is_ending.load(Ordering::SeqCst) { Err(ending()) } else { Ok(turn) }
    }
}

/// What a request is answered.
type Answered<T> = std::result::Result<T, ErrorData>;

struct Server<C> {
    began: Instant,
    commands: Arc<C>,
    version: String,
    turns: Arc<Turns>,
    tools: Vec<Tool>,
}

impl<C: Commands> Server<C> {
    fn instructions(&self) -> &'static str {
        if self.commands.undoes() { INSTRUCTIONS } else { INSTRUCTIONS_ON_SERVER }
    }

    fn new(commands: C, version: &str) -> Self {
        Self {
            began: Instant::now(),
            commands: Arc::new(commands),
            version: version.to_owned(),
            turns: Arc::new(Turns::new()),
            // Made once: the schemas are large, and every client asks for the list.
            tools: TOOLS.iter().map(catalogue::CatalogueTool::listed).collect(),
        }
    }

    /// Runs a command when those before it have ended. It runs to its end even if the request is cancelled.
    async fn run(&self, words: Words) -> Result<Said> {
        let turn = self.turns.next().await?;
        let commands = self.commands.clone();
        let call = tokio::task::spawn_blocking(move || {
            let said = commands.run(words.as_slice());
            // The turn moves into the thread, so that a request that is cancelled does not let the next command start beside this one.
            drop(turn);
            said
        });
        // Only a panic of the command ends its thread without an answer.
        call.await.unwrap_or_else(|error| {
            Err(Diagnosis::new(Code::Internal, format!("The call ended without an answer: {error}.")))
        })
    }

    async fn plain(&self, call: CatalogueCall) -> CallToolResult {
        match self.run(call.words).await {
            Ok(said) => answer::told(said, call.page),
            Err(error) => answer::failed(&call.takes.explained(error)),
        }
    }

    /// Calls undo or redo: without a hash it plans and asks, with the hash of a plan it does exactly that.
    async fn in_two_steps(
        &self,
        (call, step): (CatalogueCall, ConsentStep),
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> CallToolResponse {
        let answered = elicitation::answered(request, self.began.elapsed()).filter(|_| step == ConsentStep::PlanAndAsk);
        let approved = match (&step, answered) {
            (ConsentStep::Do(hash), _) => Some(hash.as_str()),
            (_, Some((hash, Decision::Yes))) => Some(hash),
            _ => None,
        };
        // An approved hash is passed on unchecked: `--expect-plan` refuses it if it is not that of the present plan.
        if let Some(hash) = approved {
            return self.carry_out(&call.words, hash).await.into();
        }
        let said = match self.run(call.words.clone().switch("--dry-run", true)).await {
            Ok(said) => said,
            Err(error) => return answer::failed(&call.takes.explained(error)).into(),
        };
        // The dry run is needed in any case: without an approval its plan is the answer.
        let plan = Plan::of(&said);
        let mut decision = answered.map_or(Decision::Undecided, |(_, decision)| decision);
        if let Some(hash) = plan.hash.as_deref().filter(|_| step == ConsentStep::PlanAndAsk && answered.is_none()) {
            match elicitation::way(context) {
                Some(AskingWay::Answer) => {
                    return elicitation::input_required(&said.text, hash, self.began.elapsed()).into();
                }
                Some(AskingWay::Request) => {
                    decision = elicitation::request(context, &said.text).await;
                    if decision == Decision::Yes {
                        return self.carry_out(&call.words, hash).await.into();
                    }
                }
                None => {}
            }
        }
        let mut notes = said.notes;
        match decision {
            Decision::No => notes.push(REFUSED.to_owned()),
            Decision::Declined => notes.extend([DECLINED.to_owned(), plan.what_next(&request.name)]),
            _ => notes.push(plan.what_next(&request.name)),
        }
        answer::told(Said { notes, ..said }, None).into()
    }

    /// Carries out the plan with this hash. If the plan has changed, the answer refuses it and shows the new one.
    async fn carry_out(&self, words: &Words, hash: &str) -> CallToolResult {
        // `--yes` is given, because a command without a terminal asks no question, and refuses instead.
        let sure = words.clone().switch("--yes", true).flag("--expect-plan", hash);
        let error = match sure {
            Ok(sure) => match self.run(sure).await {
                Ok(said) => return answer::told(said, None),
                Err(error) => error,
            },
            Err(error) => error,
        };
        let mut result = answer::failed(&error);
        if error.code() == Code::PlanChanged
            // The refusal is the answer; without a new plan it is only shorter.
            && let Ok(now) = self.run(words.clone().switch("--dry-run", true)).await
        {
            result.content.push(ContentBlock::text(format!("The new plan: {}", now.json.trim_end())));
        }
        result
    }
}

/// What the model is told if its person was asked and did not approve.
const REFUSED: &str = "Nothing was changed: the person was asked, and did not approve this plan. Do not carry it out unless they ask for it.";

/// What the model is told if the client declined at once, as Codex and Copilot do when they run without a person.
const DECLINED: &str = "The client was asked for its person's approval, and declined. If the person refused, do not carry the plan out unless they ask \
                        for it; a client without a person declines by itself.";

/// The plan that a dry run printed.
struct Plan {
    /// Its hash; `None` if the plan would be refused, or if there is nothing to do.
    hash: Option<String>,
    is_refused: bool,
}

impl Plan {
    fn of(said: &Said) -> Self {
        let value: serde_json::Value = serde_json::from_str(&said.json).unwrap_or_default();
        let is_refused = !value["refusal"].is_null();
        // A redo prints the rollback that it would undo: there, `plan_hash` belongs to that rollback, and `undo_plan_hash` to the redo.
        let hash = ["undo_plan_hash", "plan_hash"].iter().find_map(|name| value[*name].as_str());
        Self { hash: hash.filter(|_| !is_refused).map(str::to_owned), is_refused }
    }

    fn what_next(&self, tool: &str) -> String {
        match &self.hash {
            Some(hash) => format!(
                "Nothing was changed. Show the person what would go back. To carry out exactly this plan, call {tool} again with the same \
                 arguments and \"expect_plan\": \"{hash}\"."
            ),
            None if self.is_refused => "Nothing was changed, and nothing would be: `refusal` says why. What keeps others' work, or leaves \
                                        outside effects as they are, is an argument of this tool; what forces is for a person, on the \
                                        command line."
                .to_owned(),
            None => "Nothing was changed.".to_owned(),
        }
    }
}

impl<C: Commands> ServerHandler for Server<C> {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().enable_prompts().build();
        let mut config = ServerConfig::new(capabilities).with_instructions(self.instructions());
        config.server_info = Implementation::new("ic", self.version.clone());
        config
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Answered<ListToolsResult> {
        Ok(ListToolsResult::with_all_items(self.tools.clone()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.tools.iter().find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Answered<CallToolResponse> {
        let Some(tool) = catalogue::named(&request.name) else {
            let names: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
            let message = format!("There is no tool {:?}: there are {}.", request.name, names.join(", "));
            return Err(ErrorData::invalid_params(Cow::Owned(message), None));
        };
        let own = self.commands.dispatch();
        let call = match tool.call(request.arguments.clone(), own.as_deref()) {
            Ok(call) => call,
            Err(error) => return Ok(answer::failed(&error).into()),
        };
        Ok(match call.step.clone() {
            Some(step) => self.in_two_steps((call, step), &request, &context).await,
            None => self.plain(call).await.into(),
        })
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Answered<ListResourcesResult> {
        Ok(ListResourcesResult::with_all_items(resources::fixed()))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Answered<ListResourceTemplatesResult> {
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Answered<ReadResourceResponse> {
        let uri = &request.uri;
        let Some(resource) = resources::ResourceName::parse(uri) else {
            let message = format!("There is no resource {uri:?}: the resources and their templates are listed.");
            return Err(ErrorData::resource_not_found(message, None));
        };
        let words = resource.words().map_err(|error| answer::refused(&error))?;
        let said = self.run(words).await.map_err(|error| answer::refused(&error))?;
        Ok(resource.contents(uri, &said).into())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Answered<ListPromptsResult> {
        Ok(ListPromptsResult::with_all_items(prompts::all()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Answered<GetPromptResponse> {
        let Some(prompt) = prompts::PromptName::parse(&request.name) else {
            return Err(ErrorData::invalid_params(format!("There is no prompt {:?}.", request.name), None));
        };
        let mut point = None;
        for (name, value) in request.arguments.iter().flatten() {
            let ("point", Some(text)) = (name.as_str(), value.as_str()) else {
                let message = format!("The prompt takes a text for point, and nothing else; not {name:?}.");
                return Err(ErrorData::invalid_params(message, None));
            };
            // A client may send the field that its person left blank.
            point = Some(text).filter(|text| !text.is_empty());
        }
        let words = prompt.words(point).map_err(|error| answer::refused(&error))?;
        // A refused undo is no failed request: the person chose the prompt, and reads here why it is refused.
        let said = self.run(words).await.unwrap_or_else(|error| prompts::in_the_way(&error));
        Ok(prompt.told(&said.text, point).into())
    }
}
