#!/usr/bin/env node
// Starts the program `ic` of the package for this system.
'use strict'

const { spawn } = require('node:child_process')
const { constants } = require('node:os')

const system = `agent-undo-${process.platform}-${process.arch}`
let program
try {
  program = require.resolve(`${system}/bin/ic`)
} catch {
  console.error(`ic: the package ${system} is not installed.`)
  console.error('Either npm left it out (--omit=optional does), or there is none for this system: see the README.')
  process.exit(2)
}

const words = process.argv.slice(2)
// Where Node can, it becomes the program, and no process stands between that and who started it.
if (process.execve) process.execve(program, ['ic', ...words], process.env)

const child = spawn(program, words, { stdio: 'inherit', argv0: 'ic' })
child.on('error', (error) => {
  console.error(`ic: ${program} cannot be started: ${error.message}`)
  process.exit(2)
})
child.on('exit', (code, signal) => process.exit(code ?? 128 + constants.signals[signal]))
// Keys on a terminal, and its end, reach both. Another SIGTERM may be for this process alone.
for (const signal of ['SIGINT', 'SIGQUIT', 'SIGHUP']) process.on(signal, () => {})
process.on('SIGTERM', () => child.kill('SIGTERM'))
