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

const child = spawn(program, process.argv.slice(2), { stdio: 'inherit' })
child.on('error', (error) => {
  console.error(`ic: ${program} cannot be started: ${error.message}`)
  process.exit(2)
})
child.on('exit', (code, signal) => process.exit(code ?? 128 + constants.signals[signal]))
// Ctrl-C on a terminal reaches both, and the program decides what it means. Other signals reach only this process.
process.on('SIGINT', () => {})
for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
