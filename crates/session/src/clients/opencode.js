// It tells ic of each prompt and of each call of a tool, so that ic undo can undo a prompt. It refuses a call only where ic says so: a
// fault of ic, or that it is missing, is never in the way.
import { spawn } from "node:child_process"

const PROGRAM = @PROGRAM@
const EVENTS = new Set(@EVENTS@)
const PATIENCE_MS = 30000

function tell(event, payload) {
  return new Promise((resolve) => {
    if (!EVENTS.has(event)) return resolve({})
    try {
      const child = spawn(PROGRAM, ["hook", "opencode", event], { cwd: payload.cwd, stdio: ["pipe", "pipe", "ignore"] })
      const timer = setTimeout(() => resolve({}), PATIENCE_MS)
      let said = ""
      child.stdout.on("data", (text) => (said += text))
      child.stdin.on("error", () => {})
      child.on("error", () => resolve({}))
      child.on("close", () => {
        clearTimeout(timer)
        try {
          resolve(JSON.parse(said))
        } catch {
          resolve({})
        }
      })
      child.stdin.end(JSON.stringify(payload))
    } catch {
      resolve({})
    }
  })
}

export const IC = async ({ client, directory }) => {
  // For a subagent's session the one that began it.
  const parents = new Map()

  // Whose work a session's is: a subagent's belongs to the session of the person.
  async function speaker(id) {
    if (!parents.has(id)) {
      let parent
      try {
        parent = (await client.session.get({ path: { id } }))?.data?.parentID
      } catch {}
      parents.set(id, parent)
    }
    const parent = parents.get(id)
    if (!parent || parent === id) return { session_id: id, cwd: directory }
    return { ...(await speaker(parent)), agent_id: id }
  }

  return {
    event: async ({ event }) => {
      const { sessionID, info } = event.properties ?? {}
      const id = sessionID ?? info?.id
      if (event.type === "session.created" && info?.parentID) parents.set(id, info.parentID)
      if (event.type?.startsWith("session.") && EVENTS.has(event.type) && id)
        await tell(event.type, await speaker(id))
    },
    "chat.message": async ({ sessionID }, { message, parts }) => {
      const typed = parts.filter((part) => part.type === "text" && !part.synthetic).map((part) => part.text)
      const model = message?.model?.modelID
      await tell("chat.message", { ...(await speaker(sessionID)), prompt: typed.join("\n"), prompt_id: message?.id, model })
    },
    "tool.execute.before": async ({ tool, sessionID, callID }, { args }) => {
      const call = { tool_name: tool, tool_input: args, tool_use_id: callID }
      const { refuse } = await tell("tool.execute.before", { ...(await speaker(sessionID)), ...call })
      if (refuse) throw new Error(refuse)
    },
    "tool.execute.after": async ({ tool, sessionID, callID, args }) => {
      const call = { tool_name: tool, tool_input: args, tool_use_id: callID }
      await tell("tool.execute.after", { ...(await speaker(sessionID)), ...call })
    },
    "shell.env": async ({ sessionID }, output) => {
      if (sessionID) output.env.IC_OPENCODE_SESSION = (await speaker(sessionID)).session_id
    },
  }
}
